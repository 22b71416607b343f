// Two to four models: differences with intervals by task and category, and the items that only one gets right.
import { useEffect, useRef } from "preact/hooks";
import type { Board, Index, Items, Pair, Points, Tally } from "../data";
import { useData } from "../data";
import { Difference, Scale, scaleEnd } from "../charts";
import { counted, difference, negative, plain, points, short } from "../format";
import { Gallery } from "../items";
import { Broken, Choice, Head, Loading } from "../parts";
import { address, setParams, usePlace } from "../url";

const MOST = 4;
const VERDICTS: Record<string, string> = { win: "better", loss: "worse", tie: "tied" };

export function CompareView({ index }: { index: Index }) {
  const { name, params } = usePlace();
  const entry = index.boards.find((board) => board.name === (name || index.first));
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  const pairs = useData<Pair[]>("compare");
  if (!entry) return <><h1>Compare</h1><p>There is no board of that name.</p></>;
  if (!board || pairs === undefined) return <Loading data={board} />;
  const labels = [...new Set(board.models.label)];
  const stated = (params.get("models") ?? "").split("\n").filter((label) => labels.includes(label));
  const chosen = stated.length ? stated : labels.slice(0, 2);
  const choose = (place: number, label: string): void => {
    const next = [...chosen];
    next[place] = label;
    setParams({ models: next.filter(Boolean).join("\n"), task: "" });
  };
  const others = chosen.slice(1).map((b) => ({ b, pair: (pairs ?? []).map((pair) => oriented(pair, chosen[0]!, b)).find(Boolean) ?? null }));
  const first = others.find(({ pair }) => pair)?.pair?.tasks.task.find((name) => index.items[name]) ?? "";
  const task = params.get("task") || first; // without a choice, items of one task show what there is to see
  return (
    <>
      <Head view="Compare" title={entry.name} lead="Two to four models side by side: where they differ by more than chance, and the very items that only one of them gets right.">
        <Choice label="Benchmark" value={entry.name} options={index.boards.map((other) => other.name)} onChange={(value) => (location.hash = address("compare", value))} />
        {[...chosen, ...(chosen.length < MOST ? [""] : [])].map((label, place) => (
          <Choice key={place} label={place ? `Model ${place + 1}` : "Model"} value={label} any={place > 1 || !label ? (label ? "none" : "add a model") : false} options={labels} onChange={(value) => choose(place, value)} />
        ))}
      </Head>
      {!others.length && <p class="hint">{labels.length < 2 ? "The board has one model: there is nothing to compare it with." : "Choose a second model."}</p>}
      {others.map(({ b, pair }) => (
        <section key={b} class="pair">
          <h2>
            {plain(short(chosen[0]!))} against {plain(short(b))}
          </h2>
          {pair ? <Differences pair={pair} task={task} /> : <Plain board={board} a={chosen[0]!} b={b} />}
        </section>
      ))}
      {task && index.items[task] && <Flips file={index.items[task]!} models={chosen} asked={params.get("task") ?? ""} />}
    </>
  );
}

/** The pair seen from model a; null where it is about others. */
function oriented(pair: Pair, a: string, b: string): Pair | null {
  if (pair.a === a && pair.b === b) return pair;
  if (pair.a !== b || pair.b !== a) return null;
  const other = (end: Points | null): Points | null => end && negative(end);
  const turned = (tally: Tally): Tally => ({ ...tally, wins: tally.losses, losses: tally.wins, difference: negative(tally.difference), low: other(tally.high), high: other(tally.low) });
  const word: Record<string, string> = { win: "loss", loss: "win", tie: "tie" };
  const tasks = pair.tasks;
  return {
    ...pair,
    a,
    b,
    sentence: "", // it is about b against a
    tasks: { ...tasks, a: tasks.b, b: tasks.a, difference: tasks.difference.map(negative), low: tasks.high.map(other), high: tasks.low.map(other), verdict: tasks.verdict.map((verdict) => word[verdict] ?? verdict) },
    categories: pair.categories.map(([name, tally]) => [name, turned(tally)]),
    total: turned(pair.total),
  };
}

function Differences({ pair, task }: { pair: Pair; task: string }) {
  const { tasks } = pair;
  const rows = tasks.task.map((_, row) => row).sort((x, y) => tasks.difference[y]![0] - tasks.difference[x]![0]);
  const most = scaleEnd(tasks.difference);
  const line = (name: string, value: Points, low: Points | null, high: Points | null): preact.JSX.Element => (
    <Difference value={value} low={low} high={high} most={most} label={`${name}: ${points(value)}${low ? `, 95 %: ${points(low)} to ${points(high)}` : ""}`} />
  );
  return (
    <>
      {pair.sentence && <p>{plain(pair.sentence)}</p>}
      <Sum tally={pair.total} a={short(pair.a)} b={short(pair.b)} />
      <div class="side">
        <div class="scroll less" tabIndex={0} role="region" aria-label={`Differences to ${plain(pair.b)} by category`}>
          <table>
            <thead>
              <tr><th scope="col">Category</th><th scope="col">better</th><th scope="col">tied</th><th scope="col">worse</th><th scope="col" title="mean of the differences of the tasks">mean</th><th scope="col"><Scale most={most} /></th></tr>
            </thead>
            <tbody>
              {[...pair.categories, ["all", pair.total] as [string, Tally]].map(([name, tally]) => (
                <tr key={name} class={name === "all" ? "total" : ""}>
                  <th scope="row">{plain(name)}</th>
                  <td>{tally.wins}</td><td>{tally.ties}</td><td>{tally.losses}</td>
                  <td>{points(tally.difference)}</td>
                  <td class="drawn">{line(name, tally.difference, tally.low, tally.high)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <div class="scroll" tabIndex={0} role="region" aria-label={`Differences to ${plain(pair.b)} by task`}>
          <table>
            <thead>
              <tr><th scope="col">Task</th><th scope="col">{plain(short(pair.a))}</th><th scope="col">{plain(short(pair.b))}</th><th scope="col">difference</th><th scope="col"><Scale most={most} /></th><th scope="col" title="how likely so large a difference is by chance, corrected for the number of tasks">p (Holm)</th><th scope="col">verdict</th></tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row} class={tasks.task[row] === task ? "pinned" : ""}>
                  <th scope="row">
                    <button type="button" class="link" aria-label={plain(tasks.task[row]!)} aria-pressed={tasks.task[row] === task} onClick={() => setParams({ task: tasks.task[row]! })}>
                      <Broken text={plain(tasks.task[row]!)} />
                    </button>
                  </th>
                  <td>{points(tasks.a[row])}</td><td>{points(tasks.b[row])}</td>
                  <td>{points(tasks.difference[row])}</td>
                  <td class="drawn">{line(tasks.task[row]!, tasks.difference[row]!, tasks.low[row] ?? null, tasks.high[row] ?? null)}</td>
                  <td>{tasks.holm[row]}</td>
                  <td class={tasks.verdict[row]}>{VERDICTS[tasks.verdict[row]!] ?? tasks.verdict[row]}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
      {pair.refused.length > 0 && <p class="hint">Not comparable: {pair.refused.map(([name, why]) => `${plain(name)} (${plain(why)})`).join("; ")}</p>}
      <p class="hint">Differences in points: a bar to the right is in favour of {plain(short(pair.a))}; the thin line is the 95 % interval. Click a task to see the items that only one of them gets right.</p>
    </>
  );
}

/** On how many tasks a is better, tied or worse, as one bar. */
function Sum({ tally, a, b }: { tally: Tally; a: string; b: string }) {
  const parts = [
    ["wins", tally.wins, `${plain(a)} better on ${counted(tally.wins, "task")}`],
    ["ties", tally.ties, `${tally.ties} tied`],
    ["losses", tally.losses, `${plain(b)} better on ${counted(tally.losses, "task")}`],
  ] as const;
  return (
    <div class="sum" role="img" aria-label={parts.map(([, , words]) => words).join(", ")}>
      {parts.filter(([, count]) => count).map(([kind, count, words]) => (
        <span key={kind} class={kind} title={words} style={{ flex: `${count} 1 0` }}>{count > (kind === "ties" ? 0.1 : 0.35) * (tally.wins + tally.ties + tally.losses) ? words : count}</span>
      ))}
    </div>
  );
}

/** Differences of published scores: without items there are no intervals. */
function Plain({ board, a, b }: { board: Board; a: string; b: string }) {
  const width = board.columns.length;
  const [row, other] = [board.models.label.indexOf(a), board.models.label.indexOf(b)];
  const columns = board.columns.map((column, number) => ({ column, cells: [row * width + number, other * width + number] }));
  const both = columns.flatMap(({ column, cells }) => {
    const [x, y] = cells.map((cell) => (board.apart.includes(cell) ? null : board.values[cell]));
    return x && y ? [{ column, x, y, gap: difference(x, y) }] : [];
  });
  const most = scaleEnd(both.map(({ gap }) => gap));
  return (
    <>
      <p class="hint">Published scores come without items, so these differences have no intervals.{board.apart.length > 0 && " Means over different tasks are left out."}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Differences to ${plain(b)}`}>
        <table>
          <thead><tr><th scope="col">Column</th><th scope="col">{plain(short(a))}</th><th scope="col">{plain(short(b))}</th><th scope="col">difference</th><th scope="col"><Scale most={most} /></th></tr></thead>
          <tbody>
            {both.map(({ column, x, y, gap }) => (
              <tr key={column.kind + column.name}>
                <th scope="row"><Broken text={plain(column.name)} /></th><td>{points(x)}</td><td>{points(y)}</td><td>{points(gap)}</td>
                <td class="drawn"><Difference value={gap} low={null} high={null} most={most} label={`${column.name}: ${points(gap)}`} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Flips({ file, models, asked }: { file: string; models: string[]; asked: string }) {
  const items = useData<Items>(`items/${file}`);
  const place = useRef<HTMLElement>(null);
  const before = useRef(asked);
  useEffect(() => {
    if (items && asked !== before.current) place.current?.scrollIntoView({ block: "start" }); // a task was clicked, far above
    if (items) before.current = asked;
  }, [items, asked]);
  if (!items) return <Loading data={items} />;
  const numbers = models.map((label) => items.models.indexOf(label)).filter((number) => number >= 0);
  const shown = items.flips.filter((flip) => numbers.includes(flip.a) && numbers.includes(flip.b));
  return (
    <section id="flips" ref={place}>
      <h2>Flips of <a href={address("task", items.task)}>{plain(items.task)}</a></h2>
      <p class="hint">Items that one model gets right and the other wrong, with the right answer and the five best answers of each model, by similarity.</p>
      {items.note && <p class="hint">{plain(items.note)}</p>}
      {shown.map((flip) =>
        ([[flip.a, flip.only_a, flip.count_a], [flip.b, flip.only_b, flip.count_b]] as const).map(([model, only, count]) => (
          <section key={`${flip.a}-${flip.b}-${model}`}>
            <h3>
              Of {plain(short(items.models[flip.a]!))} and {plain(short(items.models[flip.b]!))}, only {plain(short(items.models[model]!))} is right on {count} {count === 1 ? "item" : "items"}
              {count > only.length ? `, of which ${only.length} are shown` : ""}
            </h3>
            <Gallery items={items} numbers={[...only]} models={[flip.a, flip.b]} />
          </section>
        )),
      )}
      {!shown.length && <p>These models have no items in common on this task.</p>}
    </section>
  );
}
