// A task: its protocol, data and known faults, sample items, all models' scores, and the hardest items.
import type { Board, Index, Items, Points, TaskFacts } from "../data";
import { useData } from "../data";
import { counted, plain, points, short, step } from "../format";
import { Gallery } from "../items";
import { Facts, Head, Loading, ModelName, Notes } from "../parts";
import { ScoreBar } from "../charts";
import { address, setParams, usePlace, whole } from "../url";

export function TaskView({ index }: { index: Index }) {
  const { name, params } = usePlace();
  const number = index.tasks.name.findIndex((task) => whole(task) === name);
  if (number < 0) return <List index={index} query={params.get("q") ?? ""} />;
  return <Task key={name} index={index} name={index.tasks.name[number]!} family={index.tasks.family[number]!} />;
}

function List({ index, query }: { index: Index; query: string }) {
  const wanted = query.toLowerCase();
  const numbers = index.tasks.name.map((_, number) => number).filter((number) => `${index.tasks.name[number]} ${index.tasks.category[number]}`.toLowerCase().includes(wanted));
  return (
    <>
      <Head view="Tasks" lead="Every task of the benchmarks on this page: how it is scored, on which data, and how all models do on it.">
        <label>
          Search
          <input type="search" value={query} onInput={(event) => setParams({ q: event.currentTarget.value })} />
        </label>
      </Head>
      <p class="hint" role="status">{numbers.length} of {counted(index.tasks.name.length, "task")}</p>
      {grouped(numbers, (number) => index.tasks.family[number]!).map(([family, ofFamily]) => (
        <section class="card" key={family}>
          <h2>{plain(familyOf(index, ofFamily[0]!))} <small>{counted(ofFamily.length, "task")}</small></h2>
          <ul class="names">
            {grouped(ofFamily, (number) => index.tasks.category[number]!).map(([category, tasks]) => (
              <li key={category}>
                <h3>{plain(category)}</h3>
                <ul>{tasks.map((number) => <li key={number}><a href={address("task", index.tasks.name[number]!)}>{plain(index.tasks.name[number]!)}</a></li>)}</ul>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** The name of a task's family, of which the index has the file; one's own families have no benchmark. */
const familyOf = (index: Index, task: number): string =>
  index.boards.find((board) => board.family && board.tasks.includes(task))?.family ?? index.tasks.family[task]!.replace(/-[0-9a-f]{6}$/, "");

/** Numbers by a name that each has, in the order in which the names occur first. */
function grouped(numbers: number[], nameOf: (number: number) => string): [string, number[]][] {
  const groups = new Map<string, number[]>();
  for (const number of numbers) groups.set(nameOf(number), [...(groups.get(nameOf(number)) ?? []), number]);
  return [...groups];
}

function Task({ index, name, family }: { index: Index; name: string; family: string }) {
  const tasks = useData<Record<string, TaskFacts>>(`tasks/${family}`);
  const facts = tasks?.[name];
  const items = useData<Items>(index.items[name] ? `items/${index.items[name]}` : null);
  if (!facts) return <Loading data={tasks} />;
  return (
    <>
      <Head view="Task" title={name} lead={`${plain(facts.family)} · ${plain(facts.category)} · scored by ${facts.metric}${!facts.chance ? "" : `, by chance ${points(facts.chance)}`} · ${facts.modalities.join(", ")}`} />
      <Notes notes={facts.notes} kind="plain" />
      {facts.errata.length > 0 && (
        <section class="card">
          <h2>Known faults of published scores</h2>
          {facts.errata.map((erratum) => (
            <p key={erratum.id}>
              <b>{plain(erratum.id)}</b> ({erratum.effect}): {plain(erratum.what)} <span class="hint">{plain(erratum.evidence)}</span>
            </p>
          ))}
        </section>
      )}
      <Scores index={index} name={name} />
      {items && (
        <>
          {items.parts && <Parts items={items} parts={items.parts} />}
          {items.note && <p class="hint">{plain(items.note)}</p>}
          <h2>Sample items</h2>
          <Gallery items={items} numbers={items.sample} />
          {items.hardest.length > 0 && (
            <>
              <h2>The hardest items</h2>
              <Gallery items={items} numbers={items.hardest} />
            </>
          )}
        </>
      )}
      <h2>Protocol</h2>
      <div class="card">
        <Facts facts={[...facts.facts, ...facts.fingerprints.map(([part, print]): [string, string] => ["fingerprint", `${part}: ${print}`])]} />
      </div>
    </>
  );
}

function Scores({ index, name }: { index: Index; name: string }) {
  const { params } = usePlace();
  const boards = index.boards.filter((entry) => entry.tasks.includes(index.tasks.name.indexOf(name)));
  const entry = boards.find((board) => board.name === params.get("board")) ?? boards[0];
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  if (!board || !entry) return <Loading data={board} />;
  const column = board.columns.findIndex((other) => other.kind === "task" && other.name === name);
  const width = board.columns.length;
  const rows = board.models.label
    .map((label, row) => ({ label, model: board.models.name[row]!, cell: row * width + column, value: board.values[row * width + column] }))
    .filter((row): row is typeof row & { value: Points } => Boolean(row.value))
    .sort((a, b) => b.value[0] - a.value[0]);
  const chance = board.columns[column]?.chance;
  return (
    <section>
      <h2>Scores of {counted(rows.length, "model")}</h2>
      <div class="scroll low" tabIndex={0} role="region" aria-label="Scores of all models">
        <table class="whole">
          <thead><tr><th scope="col">Model</th><th scope="col">score</th><th scope="col" class="empty">95 %</th><th scope="col"><span class="scale"><span>0</span><span>50</span><span>100</span></span></th></tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.cell}>
                <th scope="row" class="name"><a href={address("model", row.model)}><ModelName label={row.label} /></a></th>
                <td>{points(row.value)}</td>
                <td class="empty">{board.low?.[row.cell] ? `${points(board.low[row.cell])} – ${points(board.high?.[row.cell])}` : ""}</td>
                <td class="drawn"><ScoreBar value={row.value} low={board.low?.[row.cell]} high={board.high?.[row.cell]} chance={chance} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chance && <p class="hint">The red line is what chance would get: {points(chance)}.</p>}
    </section>
  );
}

/** Scores by subset: languages, or the directions between modalities. */
function Parts({ items, parts }: { items: Items; parts: NonNullable<Items["parts"]> }) {
  return (
    <section>
      <h2>By split and subset</h2>
      <div class="scroll low" tabIndex={0} role="region" aria-label="Scores by split and subset">
        <table class="board">
          <thead>
            <tr>
              <th scope="col" class="name">Subset</th>
              {items.models.map((model) => <th scope="col" key={model}>{plain(short(model))}</th>)}
            </tr>
          </thead>
          <tbody>
            {parts.name.map((part, row) => (
              <tr key={part}>
                <th scope="row" class="name">{plain(part)}</th>
                {parts.scores.map((scores, model) => {
                  const score = scores[row] ?? null;
                  return <td key={model} class={score === null ? "empty" : `score h${step(score)}`}>{score === null ? "–" : points(score)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
