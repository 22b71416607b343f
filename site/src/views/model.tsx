// A model: its card, its place on every board, where it is strong and weak against models of like size, and its failures.
import type { Board, Index, Items, Models, Points } from "../data";
import { useData } from "../data";
import { Difference, Scale, scaleEnd } from "../charts";
import { amount, counted, difference, plain, points } from "../format";
import { Gallery } from "../items";
import { Broken, Choice, Facts, Head, Loading, ModelName, Tiles } from "../parts";
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
      <Head view="Models" lead="Every model that has a score on this page: what it is, what it takes, and where it stands.">
        <label>
          Search
          <input type="search" value={query} onInput={(event) => setParams({ q: event.currentTarget.value })} />
        </label>
      </Head>
      <p class="hint" role="status">{numbers.length} of {counted(models.name.length, "model")}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Models">
        <table class="board whole">
          <thead>
            <tr><th scope="col" class="name">Model</th><th scope="col">Parameters</th><th scope="col">Dimension</th>{["Family", "Type", "Takes", "Access"].map((head) => <th scope="col" class="words" key={head}>{head}</th>)}</tr>
          </thead>
          <tbody>
            {numbers.map((number) => (
              <tr key={number}>
                <th scope="row" class="name"><a href={address("model", models.name[number]!)}><ModelName label={models.name[number]!} /></a></th>
                <td>{amount(models.parameters[number])}</td><td>{models.dim[number]?.toLocaleString("en")}</td>
                <td class="words">{plain(models.family[number]!)}</td><td class="words">{plain(models.type[number]!)}</td>
                <td class="words">{models.modalities[number]!.join(", ")}</td><td class="words">{models.access[number]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Model({ index, models, number }: { index: Index; models: Models; number: number }) {
  const { params } = usePlace();
  const name = models.name[number]!;
  const boards = index.boards.filter((entry) => entry.models.includes(number));
  const entry = boards.find((board) => board.name === params.get("board")) ?? boards[0];
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  return (
    <>
      <Head view="Model" title={name} lead={models.facts[number]!.find(([fact]) => fact === "what")?.[1]}>
        <Choice label="Benchmark" value={entry?.name ?? ""} options={boards.map((other) => other.name)} onChange={(value) => setParams({ board: value })} />
      </Head>
      <Tiles tiles={tilesOf(board ?? null, models, number)} />
      {board ? <Standing board={board} models={models} number={number} /> : <Loading data={board} />}
      <Kept index={index} name={name} />
      <h2>Card</h2>
      {models.facts[number]!.length ? <div class="card"><Facts facts={models.facts[number]!} /></div> : <p class="hint">Nobody states a card for this model.</p>}
      <Failures index={index} name={name} />
    </>
  );
}

/** The number of models that have a rank. */
const rankedOf = (board: Board): number => board.models.rank.filter((rank) => rank !== null).length;

/** The place on a board, and what the model costs. */
function tilesOf(board: Board | null, models: Models, number: number): (readonly [string, string, string?])[] {
  const row = board?.models.name.indexOf(models.name[number]!) ?? -1;
  const [rank, low, high] = board && row >= 0 ? [board.models.rank[row], board.models.low[row], board.models.high[row]] : [];
  const seconds = models.seconds[number];
  const own = board?.models.source[row] === "yours";
  const totals = board && row >= 0 ? board.columns.flatMap((column, at) => (column.kind === "total" && board.values[row * board.columns.length + at] ? [[`Score: ${column.name}`, points(board.values[row * board.columns.length + at]), `${own ? "your results" : "published"}, on ${counted(board.models.tasks[row]!, "task")}`] as const] : [])) : [];
  return [
    ...(rank ? [[`Rank on ${board!.name}`, `${rank} of ${rankedOf(board!)}`, typeof low === "number" ? `95 %: ${low} to ${high}` : ""] as const] : []),
    ...totals.slice(0, 2),
    ...(models.parameters[number] ? [["Parameters", amount(models.parameters[number])] as const] : []),
    ...(models.dim[number] ? [["Dimension", models.dim[number]!.toLocaleString("en")] as const] : []),
    ...(seconds ? [["Speed", `${Math.round(1000 / seconds).toLocaleString("en")}/s`, "items a second, where it ran"] as const] : []),
  ];
}

/** What doctor, verify and diagnoses found out about the model. */
function Kept({ index, name }: { index: Index; name: string }) {
  const reports = index.reports.filter((report) => report.model === name);
  return (
    <section>
      <h2>Examined and verified</h2>
      {["doctor", "verify"].map((kind) => {
        const of = reports.filter((report) => report.kind === kind);
        return of.length ? <Reports key={kind} reports={of} open={kind === "doctor" || of.length === 1} /> : <p class="hint" key={kind}>{kind === "doctor" ? <>No examination is kept. <code>embark doctor {plain(name)} --save</code> makes one.</> : <>Whether published scores are reproduced is not known. <code>embark verify -m {plain(name)} -b BENCHMARK --save</code> finds out.</>}</p>;
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
    .flatMap((column, at) => {
      const score = (line: number): Points | null => (board.apart.includes(line * width + at) ? null : (board.values[line * width + at] ?? null));
      const others = peers.map((peer) => score(peer.row)).filter((other): other is Points => other !== null).sort((a, b) => a[0] - b[0]);
      const [value, middle] = [score(row), others[Math.floor(others.length / 2)]];
      return value && middle ? [{ column, value, gap: difference(value, middle) }] : [];
    });
  const tasks = gaps.filter((gap) => gap.column.kind === "task").sort((a, b) => b.gap[0] - a.gap[0]);
  const most = scaleEnd(gaps.map(({ gap }) => gap));
  const table = (title: string, shown: typeof gaps): preact.JSX.Element => (
    <section class="card gaps">
      <h3>{title}</h3>
      {!shown.length && <p class="hint">None.</p>}
      <table>
        {shown.length > 0 && <thead><tr><th scope="col">{shown[0]!.column.kind === "task" ? "Task" : "Group"}</th><th scope="col">score</th><th scope="col" title="to the median of the others">difference</th><th scope="col"><Scale most={most} /></th></tr></thead>}
        <tbody>
          {shown.map((gap) => (
            <tr key={gap.column.name}>
              <th scope="row">{gap.column.kind === "task" ? <a href={address("task", gap.column.name)}><Broken text={plain(gap.column.name)} /></a> : <Broken text={plain(gap.column.name)} />}</th>
              <td>{points(gap.value)}</td>
              <td>{points(gap.gap)}</td>
              <td class="drawn"><Difference value={gap.gap} low={null} high={null} most={most} label={`${gap.column.name}: ${points(gap.gap)}`} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
  return (
    <>
      {rows.slice(1).map(({ row: line }) => (
        <p key={line}>
          {board.models.rank[line] === null
            ? "Not ranked"
            : `Rank ${board.models.rank[line]}${board.models.low[line] !== null ? ` (95 %: ${board.models.low[line]} to ${board.models.high[line]})` : ""} of ${rankedOf(board)}`} on {plain(board.name)}, {board.models.source[line] === "yours" ? "your" : plain(board.models.source[line]!)} scores
          on {counted(board.models.tasks[line]!, "task")}: {board.columns.flatMap((column, at) => (column.kind === "total" && board.values[line * width + at] ? [`${column.name} ${points(board.values[line * width + at])}`] : [])).join(", ")}.
        </p>
      ))}
      {peers.length === 0 ? <p class="hint">There is no other model on this board to compare it with.</p> : <><p class="hint">
        {like.length >= 2 ? `Differences are to the median of ${like.length} models of like size (${amount(size! / LIKE)} to ${amount(size! * LIKE)} parameters).` : `Differences are to the median of the other ${counted(peers.length, "model")}: fewer than two of like size are known.`}
      </p>
      <div class="side">
        {kind === "group" && table("Profile", gaps.filter((gap) => gap.column.kind === "group"))}
        <div class="stack">
          {table("Strengths", tasks.filter((gap) => gap.gap[0] > 0).slice(0, SHOWN))}
          {table("Weaknesses", tasks.filter((gap) => gap.gap[0] < 0).slice(-SHOWN).reverse())}
        </div>
      </div></>}
    </>
  );
}

function Failures({ index, name }: { index: Index; name: string }) {
  const { params } = usePlace();
  const tasks = Object.keys(index.items);
  const task = params.get("task") || (tasks[0] ?? "");
  const items = useData<Items>(index.items[task] ? `items/${index.items[task]}` : null);
  const model = items ? items.models.findIndex((label) => label === name || label.startsWith(`${name}@`)) : -1;
  if (!tasks.length) return null;
  return (
    <section>
      <h2>Failures</h2>
      <Choice label="Task" value={task} options={tasks} onChange={(value) => setParams({ task: value })} />
      {items && model < 0 && <p>There are no results of yours for this model on this task.</p>}
      {items && model >= 0 && (items.failures[model]!.length ? <Gallery items={items} numbers={items.failures[model]!} models={[model]} /> : <p>No item is wrong, or items are neither right nor wrong.</p>)}
    </section>
  );
}
