// Runs: live while one goes, then what each took, its warnings and its failures.
import { useEffect, useState } from "preact/hooks";
import type { Index, Items, Runs, RunState } from "../data";
import { load, useData } from "../data";
import { hours, plain, span } from "../format";
import { Gallery } from "../items";
import { Choice, Head, Loading, Notes, Tiles } from "../parts";
import { Reports } from "../reports";
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
      <Head view="Runs" lead="What was run: how far it is and what holds it back while it goes, then what it cost and where models fail." />
      {now ? <State state={now} /> : <p class="hint">No run has told its state on this machine yet: <code>embark run</code> starts one, <code>embark serve</code> follows it.</p>}
      {earlier.length > 0 && (
        <details>
          <summary>{earlier.length} earlier {earlier.length === 1 ? "run" : "runs"}</summary>
          {earlier.map((state) => <State key={state.id} state={state} />)}
        </details>
      )}
      <h2>Runs with results</h2>
      {shown.done.length ? <Costs runs={shown.done} /> : <p class="hint">None yet: <code>embark run</code> makes some.</p>}
      {shown.done[0] && shown.done[0].warnings.length > 0 && (
        <>
          <h2>Warnings of the last run</h2>
          <Notes notes={shown.done[0].warnings} />
        </>
      )}
      <h2>Reports</h2>
      <Reports reports={index.reports.filter((report) => !report.model || !["doctor", "verify"].includes(report.kind))} />
      <p class="hint">Sweeps and diagnoses that were kept with <code>--save</code>: <code>embark analyze truncate -m MODEL -t TASK --save</code>, <code>embark diagnose omni -m MODEL --save</code>.</p>
      <Failures index={index} />
    </>
  );
}

/** What runs took: items, seconds, hours of devices, and what a plan had predicted. */
function Costs({ runs }: { runs: Runs["done"] }) {
  const heads = ["Ended (UTC)", "Models", "Tasks", "Items", "Embedded", "Embedding", "Items/s", "Scoring", "Took", "Predicted", "CPU hours", "GPU hours"];
  return (
    <>
      <div class="scroll low" tabIndex={0} role="region" aria-label="Runs with results">
        <table class="whole">
          <thead><tr>{heads.map((head) => <th scope="col" class={head === "Models" ? "words" : ""} key={head}>{head}</th>)}</tr></thead>
          <tbody>
            {runs.map((run) => (
              <tr key={run.id}>
                <th scope="row">{run.date}</th>
                <td class="words">{run.models.map((model, number) => <span key={model}>{number ? ", " : ""}<a href={address("model", model)}>{plain(model)}</a></span>)}</td>
                <td>{run.tasks}</td><td>{run.items.toLocaleString("en")}</td><td>{run.embedded.toLocaleString("en")}</td>
                <td>{span(run.embedding)}</td><td>{run.embedding ? Math.round(run.embedded / run.embedding).toLocaleString("en") : ""}</td><td>{span(run.scoring)}</td>
                <td>{run.seconds === null ? "" : span(run.seconds)}</td><td>{run.predicted === null ? "" : span(run.predicted)}</td>
                <td>{hours(run.cpu_seconds)}</td><td>{hours(run.gpu_seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">Embedding and scoring are summed over the scores that a run wrote, and overlap. What the whole run took is known of the last runs on this machine; a prediction, where embark plan was asked before.</p>
    </>
  );
}

function State({ state }: { state: RunState }) {
  const word = state.ended ? "ended" : state.alive ? "running" : "stopped without an end";
  const models = state.models ?? [];
  const title = state.title || (models.length ? `${models.slice(0, 3).join(", ")}${models.length > 3 ? " …" : ""} on ${state.tasks} ${state.tasks === 1 ? "task" : "tasks"}` : `run ${state.id}`);
  const vectors = state.embedded + state.reused;
  const tiles: [string, string, string?][] = [
    [state.ended ? "Took" : "So far", span(state.seconds), state.predicted ? `${span(state.predicted)} predicted` : ""],
    ["Items embedded", state.embedded.toLocaleString("en"), state.seconds > 0 && state.embedded ? `${Math.round(state.embedded / state.seconds).toLocaleString("en")} a second` : ""],
    ["Vectors from the store", state.reused.toLocaleString("en"), vectors ? `${Math.round((100 * state.reused) / vectors)} % of those needed` : ""],
    ["Scores", state.scores.length.toLocaleString("en")],
    ...(state.cpu_seconds ? [["CPU cores", span(state.cpu_seconds)] as [string, string]] : []),
    ...(state.gpu_seconds ? [["GPUs", span(state.gpu_seconds)] as [string, string]] : []),
  ];
  return (
    <section class="run card" aria-label={`Run ${state.id}`}>
      <h2>
        {plain(title)} <span class={`tag ${state.alive ? "alive" : ""}`} role="status">{word}</span>
      </h2>
      <Tiles tiles={tiles} />
      {state.status && <p class="hint">{plain(state.status)}</p>}
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
      {state.scores.length > 0 && (
        <details>
          <summary>Last scores</summary>
          <Notes notes={state.scores.slice(-5).reverse().map(([model, task, score]) => `${task} ${score} (${model})`)} />
        </details>
      )}
      {state.skipped.length > 0 && <Notes notes={state.skipped.map(([model, task, kind, why]) => `${kind}: ${task} for ${model}: ${why}`)} />}
    </section>
  );
}

function Failures({ index }: { index: Index }) {
  const { params } = usePlace();
  const tasks = Object.keys(index.items);
  const task = params.get("task") || (tasks[0] ?? "");
  const items = useData<Items>(index.items[task] ? `items/${index.items[task]}` : null);
  if (!tasks.length) return null;
  return (
    <section>
      <h2>Failures</h2>
      <Choice label="Task" value={task} options={tasks} onChange={(value) => setParams({ task: value })} />
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
