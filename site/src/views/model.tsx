// A model: its card, its place on every board, where it is strong and weak against models of like size, and its failures.
import type { Board, Index, Items, Models } from "../data";
import { useData } from "../data";
import { Difference } from "../charts";
import { amount, counted, plain, points, signed } from "../format";
import { Gallery } from "../items";
import { Choice, Facts, Loading } from "../parts";
import { Reports } from "../reports";
import { address, setParams, usePlace, whole } from "../url";

const LIKE = 2.5; // a model of like size has at most so many times the parameters, and at least as small a part
const SHOWN = 6; // strengths and weaknesses

export function ModelView({ index }: { index: Index }) {
  const { name, params } = usePlace();
  const models = useData<Models>("models");
  if (!models) return <Loading data={models} />;
  const number = models.name.findIndex((model) => whole(model) === name);
  if (number < 0) return <List models={models} query={params.get("q") ?? ""} />;
  return <Model key={name} index={index} models={models} number={number} />;
}

function List({ models, query }: { models: Models; query: string }) {
  const wanted = query.toLowerCase();
  const numbers = models.name.map((_, number) => number).filter((number) => `${models.name[number]} ${models.family[number]}`.toLowerCase().includes(wanted));
  return (
    <>
      <h1>Models</h1>
      <label>
        Search
        <input type="search" value={query} onInput={(event) => setParams({ q: event.currentTarget.value })} />
      </label>
      <p class="hint" role="status">{numbers.length} of {counted(models.name.length, "model")}</p>
      <ul class="names">
        {numbers.map((number) => (
          <li key={number}>
            <a href={address("model", models.name[number]!)}>{plain(models.name[number]!)}</a>{" "}
            <small>{[models.family[number], models.type[number], amount(models.parameters[number])].filter(Boolean).join(", ")}</small>
          </li>
        ))}
      </ul>
    </>
  );
}

function Model({ index, models, number }: { index: Index; models: Models; number: number }) {
  const { params } = usePlace();
  const name = models.name[number]!;
  const seconds = models.seconds[number];
  const boards = index.boards.filter((entry) => entry.models.includes(number));
  const entry = boards.find((board) => board.name === params.get("board")) ?? boards[0];
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  return (
    <>
      <header class="head">
        <h1>{plain(name)}</h1>
        <Choice label="Benchmark" value={entry?.name ?? ""} options={boards.map((other) => other.name)} onChange={(value) => setParams({ board: value })} />
      </header>
      {board ? <Standing board={board} models={models} number={number} /> : <Loading data={board} />}
      {seconds !== null && seconds !== undefined && <p>Embedded {(1000 / seconds).toFixed(0)} items a second on the machine that ran it.</p>}
      <Kept index={index} name={name} />
      <h2>Card</h2>
      {models.facts[number]!.length ? <Facts facts={models.facts[number]!} /> : <p class="hint">Nobody states a card for this model.</p>}
      <Failures index={index} name={name} />
    </>
  );
}

/** What doctor, verify and diagnoses found out about the model. */
function Kept({ index, name }: { index: Index; name: string }) {
  const reports = index.reports.filter((report) => report.model === name);
  return (
    <section>
      <h2>Examined and verified</h2>
      {["doctor", "verify"].map((kind) => {
        const of = reports.filter((report) => report.kind === kind);
        return of.length ? <Reports key={kind} reports={of} open={kind === "doctor" || of.length === 1} /> : <p class="hint" key={kind}>{kind === "doctor" ? "No examination is kept: embark doctor MODEL --save." : "Nobody has kept whether published scores are reproduced: embark verify -m MODEL -b BENCHMARK --save."}</p>;
      })}
      <Reports reports={reports.filter((report) => !["doctor", "verify"].includes(report.kind))} />
    </section>
  );
}

function Standing({ board, models, number }: { board: Board; models: Models; number: number }) {
  const name = models.name[number]!;
  const rows = board.models.name.map((other, row) => ({ other, row })).filter(({ other }) => other === name);
  const width = board.columns.length;
  const size = models.parameters[number];
  const like = board.models.name
    .map((other, row) => ({ other, row, size: models.parameters[models.name.indexOf(other)] }))
    .filter((model) => model.other !== name && size && model.size && model.size <= size * LIKE && model.size >= size / LIKE);
  const peers = like.length >= 2 ? like : board.models.name.map((other, row) => ({ other, row })).filter(({ other }) => other !== name);
  const row = rows[0]?.row ?? 0;
  const kind = board.columns.filter((column) => column.kind === "group").length > 1 ? "group" : "task";
  const gaps = board.columns
    .map((column, at) => {
      const value = board.values[row * width + at];
      const others = peers.map((peer) => board.values[peer.row * width + at]).filter((score): score is number => typeof score === "number").sort((a, b) => a - b);
      return { column, value, middle: others[Math.floor(others.length / 2)] };
    })
    .filter((gap): gap is { column: typeof gap.column; value: number; middle: number } => typeof gap.value === "number" && gap.middle !== undefined);
  const tasks = gaps.filter((gap) => gap.column.kind === "task").sort((a, b) => b.value - b.middle - (a.value - a.middle));
  const most = Math.max(100, ...gaps.map((gap) => Math.abs(gap.value - gap.middle)));
  const table = (title: string, shown: typeof gaps): preact.JSX.Element => (
    <section>
      <h3>{title}</h3>
      {!shown.length && <p class="hint">None.</p>}
      <table>
        <tbody>
          {shown.map((gap) => (
            <tr key={gap.column.name}>
              <th scope="row">{gap.column.kind === "task" ? <a href={address("task", gap.column.name)}>{plain(gap.column.name)}</a> : plain(gap.column.name)}</th>
              <td>{points(gap.value)}</td>
              <td>{signed(gap.value - gap.middle)}</td>
              <td><Difference value={gap.value - gap.middle} low={null} high={null} most={most} label={`${gap.column.name}: ${signed(gap.value - gap.middle)}`} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
  return (
    <>
      {rows.map(({ row: line }) => (
        <p key={line}>
          {board.models.rank[line] === null ? "Not ranked" : `Rank ${board.models.rank[line]}`}
          {board.models.low[line] !== null ? ` (95 %: ${board.models.low[line]} to ${board.models.high[line]})` : ""} of {board.models.name.length} on {plain(board.name)}, {board.models.source[line] === "yours" ? "your" : plain(board.models.source[line]!)} scores
          on {counted(board.models.tasks[line]!, "task")}: {board.columns.flatMap((column, at) => (column.kind === "total" && typeof board.values[line * width + at] === "number" ? [`${column.name} ${points(board.values[line * width + at])}`] : [])).join(", ")}.
        </p>
      ))}
      {peers.length === 0 ? <p class="hint">There is no other model on this board to compare it with.</p> : <><p class="hint">
        {like.length >= 2 ? `Differences are to the median of ${like.length} models of like size (${amount(size! / LIKE)} to ${amount(size! * LIKE)} parameters).` : `Differences are to the median of the other ${counted(peers.length, "model")}: fewer than two of like size are known.`}
      </p>
      <div class="side">
        {kind === "group" && table("Profile", gaps.filter((gap) => gap.column.kind === "group"))}
        <div>
          {table("Strengths", tasks.filter((gap) => gap.value > gap.middle).slice(0, SHOWN))}
          {table("Weaknesses", tasks.filter((gap) => gap.value < gap.middle).slice(-SHOWN).reverse())}
        </div>
      </div></>}
    </>
  );
}

function Failures({ index, name }: { index: Index; name: string }) {
  const { params } = usePlace();
  const tasks = Object.keys(index.items);
  const task = params.get("task") ?? "";
  const items = useData<Items>(index.items[task] ? `items/${index.items[task]}` : null);
  const model = items ? items.models.findIndex((label) => label === name || label.startsWith(`${name}@`)) : -1;
  if (!tasks.length) return null;
  return (
    <section>
      <h2>Failures</h2>
      <Choice label="Task" value={task} any options={tasks} onChange={(value) => setParams({ task: value })} />
      {items && model < 0 && <p>There are no results of yours for this model on this task.</p>}
      {items && model >= 0 && (items.failures[model]!.length ? <Gallery items={items} numbers={items.failures[model]!} models={[model]} /> : <p>No item is wrong, or items are neither right nor wrong.</p>)}
    </section>
  );
}
