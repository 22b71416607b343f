// Runs: live while one goes, then what each took, its warnings and its failures.
import { useEffect, useState } from "preact/hooks";
import type { Index, Items, Runs, RunState } from "../data";
import { load, useData } from "../data";
import { plain } from "../format";
import { Gallery } from "../items";
import { Choice, Loading, Notes } from "../parts";
import { address, setParams, usePlace } from "../url";

const SECONDS = 2; // between two looks at a run

export function RunView({ index }: { index: Index }) {
  const first = useData<Runs>("runs");
  const [runs, setRuns] = useState<Runs | null>(null);
  useEffect(() => {
    if (!index.live) return undefined;
    let timer = 0;
    let current = true;
    const look = (): void => {
      load<Runs>("runs", true)
        .then((data) => current && setRuns(data), () => undefined) // the server may be gone; what was seen stays
        .then(() => current && (timer = window.setTimeout(look, SECONDS * 1000)));
    };
    look();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [index.live]);
  const shown = runs ?? first;
  if (!shown) return <Loading data={first} />;
  const [now, ...earlier] = shown.live;
  return (
    <>
      <h1>Runs</h1>
      {now ? <State state={now} /> : <p class="hint">No run of this home has told its state yet.</p>}
      {earlier.length > 0 && (
        <details>
          <summary>{earlier.length} earlier</summary>
          {earlier.map((state) => <State key={state.id} state={state} />)}
        </details>
      )}
      <h2>Runs with results</h2>
      <div class="scroll low" tabIndex={0} role="region" aria-label="Runs with results">
        <table>
          <thead><tr><th scope="col">Ended (UTC)</th><th scope="col">Models</th><th scope="col">Tasks</th><th scope="col">Items</th><th scope="col">Embedded</th><th scope="col">Embedding</th><th scope="col">Items/s</th><th scope="col">Scoring</th></tr></thead>
          <tbody>
            {shown.done.map((run) => (
              <tr key={run.id}>
                <th scope="row">{run.date}</th>
                <td>{run.models.map((model, number) => <span key={model}>{number ? ", " : ""}<a href={address("model", model)}>{plain(model)}</a></span>)}</td>
                <td>{run.tasks}</td><td>{run.items.toLocaleString("en")}</td><td>{run.embedded.toLocaleString("en")}</td>
                <td>{run.embedding} s</td><td>{run.embedding ? Math.round(run.embedded / run.embedding).toLocaleString("en") : ""}</td><td>{run.scoring} s</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.done[0] && shown.done[0].warnings.length > 0 && (
        <>
          <h2>Warnings of the last run</h2>
          <Notes notes={shown.done[0].warnings} />
        </>
      )}
      <Failures index={index} />
    </>
  );
}

function State({ state }: { state: RunState }) {
  const word = state.ended ? "ended" : state.alive ? "running" : "stopped without an end";
  return (
    <section class="run" aria-label={`Run ${state.id}`}>
      <h2>
        {plain(state.title || `run ${state.id}`)} <span class={`tag ${state.alive ? "alive" : ""}`} role="status">{word}</span>
      </h2>
      <p class="hint">
        {state.seconds} s · {state.embedded.toLocaleString("en")} items embedded · {state.reused.toLocaleString("en")} vectors from the store · {state.scores.length} scores
        {state.status ? ` · ${state.status}` : ""}
      </p>
      <table>
        <tbody>
          {state.stages.map((stage) => (
            <tr key={stage.name}>
              <th scope="row">{stage.name}</th>
              <td><progress max={Math.max(stage.total, stage.done, 1)} value={stage.done} aria-label={stage.name} /></td>
              <td>{stage.count}</td><td>{stage.speed}</td><td>{stage.left}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {state.scores.length > 0 && <p>Last: {state.scores.slice(-5).map(([model, task, score]) => `${plain(task)} ${score} (${plain(model)})`).join("; ")}</p>}
      {state.skipped.length > 0 && <Notes notes={state.skipped.map(([model, task, kind, why]) => `${kind}: ${task} for ${model}: ${why}`)} />}
    </section>
  );
}

function Failures({ index }: { index: Index }) {
  const { params } = usePlace();
  const tasks = Object.keys(index.items);
  const task = params.get("task") ?? "";
  const items = useData<Items>(index.items[task] ? `items/${index.items[task]}` : null);
  if (!tasks.length) return null;
  return (
    <section>
      <h2>Failures</h2>
      <Choice label="Task" value={task} any options={tasks} onChange={(value) => setParams({ task: value })} />
      {items?.note && <p class="hint">{plain(items.note)}</p>}
      {items?.models.map((model, number) => (
        <section key={model}>
          <h3>{plain(model)}</h3>
          {items.failures[number]!.length ? <Gallery items={items} numbers={items.failures[number]!} models={[number]} /> : <p class="hint">No failures among the items, or items are neither right nor wrong.</p>}
        </section>
      ))}
    </section>
  );
}
