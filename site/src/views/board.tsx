// The leaderboard: models × totals, groups or tasks, with rank intervals, tie groups and footnotes.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Board, Column, Index, Models } from "../data";
import { useData } from "../data";
import { amount, counted, csv, latex, plain, points, short } from "../format";
import { Broken, Choice, CopyButton, Head, Loading, ModelName, Notes } from "../parts";
import { address, setParams, usePlace } from "../url";

const SIZES: [string, number, number][] = [
  ["under 100 M", 0, 1e8],
  ["100–500 M", 1e8, 5e8],
  ["500 M – 2 B", 5e8, 2e9],
  ["2 B and more", 2e9, Infinity],
];
const HEATS = 8; // steps of color

export function BoardView({ index }: { index: Index }) {
  const place = usePlace();
  const name = place.name || index.first;
  const entry = index.boards.find((board) => board.name === name);
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  const models = useData<Models>("models");
  return (
    <>
      <Head view="Leaderboard" title={entry?.name} lead={entry && `${entry.about} ${entry.size}.`}>
        <Choice
          label="Benchmark"
          value={name}
          options={index.boards.map((other) => other.name)}
          onChange={(value) => (location.hash = address("board", value))}
        />
      </Head>
      {!entry ? <p>There is no board of that name.</p> : board && models ? <Table board={board} models={models} index={index} /> : <Loading data={board} />}
    </>
  );
}

interface Line {
  row: number; // of the board
  facts: number; // of the models, or -1
}

function Table({ board, models, index }: { board: Board; models: Models; index: Index }) {
  const { params } = usePlace();
  const get = (name: string): string => params.get(name) ?? "";
  const body = useRef<HTMLTableSectionElement>(null);
  const width = board.columns.length;
  const facts = useMemo(() => new Map(models.name.map((name, number) => [name, number])), [models]);
  const all: Line[] = useMemo(
    () => board.models.name.map((name, row) => ({ row, facts: facts.get(name) ?? -1 })),
    [board, facts],
  );
  const fact = <T,>(line: Line, values: T[]): T | undefined => (line.facts < 0 ? undefined : values[line.facts]);
  const groups = board.columns.filter((column) => column.kind === "group");
  const cols = get("cols") || (groups.length > 1 ? "groups" : "all");
  const columns = shownColumns(board, cols);
  const pins = get("pin").split("\n").filter(Boolean);
  const query = get("q").toLowerCase();
  const size = SIZES.find(([label]) => label === get("size"));
  const lines = all.filter(
    (line) =>
      (!query || board.models.label[line.row]!.toLowerCase().includes(query)) &&
      (!get("family") || fact(line, models.family) === get("family")) &&
      (!get("type") || fact(line, models.type) === get("type")) &&
      (!get("modality") || fact(line, models.modalities)?.includes(get("modality"))) &&
      (!get("access") || fact(line, models.access) === get("access")) &&
      (!get("source") || (board.models.source[line.row] === "yours") === (get("source") === "own")) &&
      (!size || inside(fact(line, models.parameters), size)),
  );
  const sort = get("sort");
  const sortColumn = board.columns.findIndex((column) => key(column) === sort);
  const sign = get("dir") === "asc" ? 1 : -1;
  const order = (line: Line): number | string | null => {
    if (sort === "model") return board.models.label[line.row]!.toLowerCase();
    if (sort === "parameters") return fact(line, models.parameters) ?? null;
    return sortColumn < 0 ? -line.row : (board.values[line.row * width + sortColumn]?.[0] ?? null);
  };
  const apart = useMemo(() => new Set(board.apart), [board]);
  const last = (line: Line): number => Number(sortColumn >= 0 && apart.has(line.row * width + sortColumn)); // a mean over other tasks is not in the order
  const pinned = (line: Line): boolean => pins.includes(board.models.label[line.row]!);
  lines.sort((a, b) => Number(pinned(b)) - Number(pinned(a)) || last(a) - last(b) || compare(order(a), order(b), sign));
  const ranges = columns.map((number) => range(lines.flatMap((line) => (apart.has(line.row * width + number) ? [] : (board.values[line.row * width + number]?.[0] ?? [])))));
  const footnotes = footnotesOf(board, lines, columns);
  const ranked = board.models.rank.filter((rank) => rank !== null).length;

  const options = (values: (string | undefined)[]): string[] => [...new Set(values.filter(Boolean) as string[])].sort();
  const sorted = (name: string): "ascending" | "descending" | "none" =>
    sort !== name ? "none" : sign > 0 ? "ascending" : "descending";
  const toggle = (name: string): void => {
    const first = name === "model" ? "asc" : "desc";
    const next = sort !== name ? first : get("dir") === first ? (first === "asc" ? "desc" : "asc") : "";
    setParams(next ? { sort: name, dir: next } : { sort: "", dir: "" });
  };
  const head = (name: string, label: string, title = "", kind = "", task = ""): preact.JSX.Element => (
    <th scope="col" aria-sort={sorted(name)} title={title} key={name} class={name === "model" ? "name" : kind}>
      <button type="button" onClick={() => toggle(name)}>
        <Broken text={plain(label)} />
        <span aria-hidden="true">{sort === name ? (sign > 0 ? " ▲" : " ▼") : ""}</span>
      </button>
      {task && <a class="about" href={address("task", task)} title={`About ${plain(task)}`} aria-label={`About ${plain(task)}`}><i>i</i></a>}
    </th>
  );
  const spans = spansOf(board, columns);
  const narrowed = ["q", "family", "type", "size", "modality", "access", "source"].filter(get);
  const pin = (label: string): void =>
    setParams({ pin: (pins.includes(label) ? pins.filter((other) => other !== label) : [...pins, label]).join("\n") });

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).matches("input, select, textarea");
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/" && !typing) {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#search")?.focus();
      }
      const move = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
      const rows = [...(body.current?.rows ?? [])];
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      if (move && !typing && at >= 0) {
        event.preventDefault();
        rows[at + move]?.querySelector<HTMLElement>("a")?.focus();
      }
      if (event.key === "p" && !typing && at >= 0) rows[at]!.querySelector<HTMLElement>("button.pin")?.click();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  const names = columns.map((number) => board.columns[number]!.name);
  const certain = columns.map((number) => lines.some((line) => board.low?.[line.row * width + number]));
  // In full, as the command line's CSV: scores from 0 to 1, with the ends of their intervals where there are some.
  const full = (): (string | number)[][] => [
    ["rank", "model", "source", "tasks", ...names.flatMap((name, at) => (certain[at] ? [name, `${name} low`, `${name} high`] : [name]))],
    ...lines.map(({ row }) => [
      board.models.rank[row] ?? "",
      board.models.label[row]!,
      board.models.source[row]!,
      board.models.covered[row]!,
      ...columns.flatMap((number, at) => (certain[at] ? [board.values, board.low, board.high] : [board.values]).map((numbers) => numbers?.[row * width + number]?.[0] ?? "")),
    ]),
  ];
  const shown = (): string[][] => lines.map(({ row }) => [board.models.label[row]!, ...columns.map((number) => `${points(board.values[row * width + number])}${board.covered[row * width + number] ? ` (${board.covered[row * width + number]})` : ""}`)]);
  return (
    <>
      <Finding board={board} />
      <details class="tools" open={innerWidth > 700}>
        <summary>Search, filters and columns</summary>
        <div class="toolbar" role="search">
          <label>
            Search
            <input id="search" type="search" value={get("q")} placeholder="press /" onInput={(event) => setParams({ q: event.currentTarget.value })} />
          </label>
          <Choice label="Columns" value={cols} options={[["groups", "groups"], ["all", "all tasks"], ...groups.map((column): [string, string] => [column.name, `tasks of ${column.name}`])]} onChange={(value) => setParams({ cols: value })} />
          <Choice label="Family" value={get("family")} any options={options(all.map((line) => fact(line, models.family)))} onChange={(value) => setParams({ family: value })} />
          <Choice label="Type" value={get("type")} any options={options(all.map((line) => fact(line, models.type)))} onChange={(value) => setParams({ type: value })} />
          <Choice label="Size" value={get("size")} any options={SIZES.map(([label]) => label)} onChange={(value) => setParams({ size: value })} />
          <Choice label="Modality" value={get("modality")} any options={options(all.flatMap((line) => fact(line, models.modalities) ?? []))} onChange={(value) => setParams({ modality: value })} />
          <Choice label="Access" value={get("access")} any options={["open", "API"]} onChange={(value) => setParams({ access: value })} />
          <Choice label="Scores" value={get("source")} any options={["own", "published"]} onChange={(value) => setParams({ source: value })} />
        </div>
      </details>
      <div class="status">
        <p class="hint" role="status">
          {lines.length < all.length ? `${lines.length} of ${counted(all.length, "model")}; ranks are among all` : counted(all.length, "model")}
        </p>
        {narrowed.length > 0 && <button type="button" onClick={() => setParams(Object.fromEntries(narrowed.map((filter) => [filter, ""])))}>Clear filters</button>}
        {pins.length > 1 && pins.length <= 4 && <a class="button first" href={address("compare", board.name, { models: pins.join("\n") })}>Compare the {pins.length} pinned</a>}
        <CopyButton label="Copy CSV" text={() => csv(full())} />
        <CopyButton label="Copy LaTeX" text={() => latex(["model", ...names], shown())} />
      </div>
      <div class="framed">
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of models">
        <table class="board">
          <thead>
            {spans.length > 0 && (
              <tr class="spans">
                <td class="rank" /><td class="name" /><td class="size" />
                {spans.map(([group, width], number) => <th scope="colgroup" colSpan={width} key={number}>{group && <span>{plain(group)}</span>}</th>)}
              </tr>
            )}
            <tr>
              <th scope="col" class="rank" title="rank and its 95 % interval; models with a letter in common are tied">Rank</th>
              {head("model", "Model")}
              {head("parameters", "Size", "parameters", "size")}
              {columns.map((number) => {
                const column = board.columns[number]!;
                const task = column.kind === "task" && index.tasks.name.includes(column.name) ? column.name : "";
                return head(key(column), column.name, about(column), column.kind, task);
              })}
            </tr>
          </thead>
          <tbody ref={body}>
            {lines.map((line) => {
              const label = board.models.label[line.row]!;
              const own = board.models.source[line.row] === "yours";
              return (
                <tr key={`${line.row}`} class={pinned(line) ? "pinned" : ""}>
                  <td class="rank">
                    <Rank board={board} row={line.row} ranked={ranked} />
                  </td>
                  <th scope="row" class="name">
                    <button type="button" class="pin" aria-pressed={pinned(line)} aria-label={`Pin ${plain(label)}`} onClick={() => pin(label)}>
                      {pinned(line) ? "★" : "☆"}
                    </button>
                    <a href={address("model", board.models.name[line.row]!)} title={plain(label)}><ModelName label={label} /></a>
                    {own ? <span class="tag yours">yours</span> : board.models.source[line.row] !== "published" ? <span class="tag">{plain(board.models.source[line.row]!)}</span> : null}
                  </th>
                  <td class="size">{amount(fact(line, models.parameters))}</td>
                  {columns.map((number, at) => (
                    <Cell board={board} cell={line.row * width + number} apart={apart.has(line.row * width + number)} range={ranges[at]!} footnotes={footnotes} />
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {lines.length === 0 && <p class="hint">No model passes the filters.</p>}
      <Legend board={board} columns={columns} partial={lines.some((line) => columns.some((number) => board.covered[line.row * width + number]))} marked={footnotes.size > 0} />
      </div>
      <ol class="footnotes" type="a">
        {[...footnotes.keys()].map((number) => (
          <li key={number}>{plain(board.footnotes[number]!)}</li>
        ))}
      </ol>
      <Notes notes={board.notes.filter((note) => !/^\([a-z]+\) /.test(note))} />
      <p class="hint">
        Keys: <kbd>/</kbd> search, <kbd>↑</kbd> <kbd>↓</kbd> models, <kbd>p</kbd> pin, <kbd>Enter</kbd> open.
      </p>
    </>
  );
}

/** Who leads, by how much, and who cannot be told apart from it. */
function Finding({ board }: { board: Board }) {
  const first = board.models.rank.indexOf(1);
  const total = board.columns.findIndex((column) => column.kind === "total");
  const score = board.values[first * board.columns.length + total];
  if (first < 0 || total < 0 || !score || board.models.name.length < 2) return null;
  const [low, high] = [board.models.low[first], board.models.high[first]];
  const letters = [...(board.models.tie[first] ?? "")];
  const tied = board.models.tie.filter((tie, row) => row !== first && letters.some((letter) => tie.includes(letter))).length;
  return (
    <p class="finding">
      <b>{plain(short(board.models.label[first]!))}</b> leads with <b>{points(score)}</b> points
      {tied ? `, but ${counted(tied, "other")} cannot be told apart from it` : letters.length ? ", and no other model is tied with it" : ""}
      {typeof low === "number" && typeof high === "number" && high > low ? `: its rank lies between ${low} and ${high} (95 %).` : "."}
    </p>
  );
}

/** What bars, letters, colors and signs of the table mean. */
function Legend({ board, columns, partial, marked }: { board: Board; columns: number[]; partial: boolean; marked: boolean }) {
  return (
    <ul class="legend">
      {board.models.low.some((low) => low !== null) && (
        <li>
          <svg viewBox="0 0 60 10" width="60" height="10" aria-hidden="true">
            <rect class="track" x="0" y="4" width="60" height="2" /><rect class="interval tie0" x="8" y="2" width="30" height="6" rx="2" /><rect class="mark" x="18" y="0" width="2" height="10" />
          </svg>
          <span>rank (line) and its 95 % interval (bar), the first on the left</span>
        </li>
      )}
      {board.models.tie.some(Boolean) && <li><span class="letters tie0">A</span> <span>models with a letter in common cannot be told apart</span></li>}
      {columns.length > 0 && (
        <li>
          <span class="ramp" aria-hidden="true">{Array.from({ length: HEATS }, (_, heat) => <i key={heat} class={`h${heat}`} />)}</span>
          <span>worst to best of the column, the best in <b>bold</b></span>
        </li>
      )}
      {partial && <li><span class="part">41/53</span> <span>mean over 41 of the 53 tasks; means over different tasks are not ranked, colored or set in bold together</span></li>}
      {marked && <li><span><b><sup>a</sup></b> footnote, below the table</span></li>}
    </ul>
  );
}

const key = (column: Column): string => `${column.kind}:${column.name}`;

function about(column: Column): string {
  if (column.kind === "total") return "the total, by the rule of the benchmark";
  if (column.kind === "group") return "mean of a group of tasks";
  return `${column.metric ?? ""}${column.chance ? `; by chance ${points(column.chance)}` : ""}`;
}

/** The columns that are chosen, tasks of a group side by side. */
function shownColumns(board: Board, cols: string): number[] {
  const groups = board.columns.filter((column) => column.kind === "group").map((column) => column.name);
  const place = (number: number): number => (board.columns[number]!.kind === "task" ? groups.indexOf(groupOf(board.columns[number]!)) : -1);
  const numbers = board.columns.map((_, number) => number);
  return numbers
    .filter((number) => {
      const column = board.columns[number]!;
      if (column.kind === "total") return true;
      if (column.kind === "group") return cols === "groups" || column.name === cols;
      return cols === "all" || (column.groups ?? []).includes(cols);
    })
    .sort((a, b) => place(a) - place(b) || a - b);
}

const groupOf = (column: Column): string => (column.kind === "task" ? (column.groups?.[0] ?? "") : "");

/** The groups above the columns, each with how many columns it spans; none where no tasks are shown. */
function spansOf(board: Board, columns: number[]): [string, number][] {
  const spans: [string, number][] = [];
  for (const number of columns) {
    const group = groupOf(board.columns[number]!);
    const last = spans[spans.length - 1];
    if (last && last[0] === group) last[1]++;
    else spans.push([group, 1]);
  }
  return spans.some(([group]) => group) ? spans : [];
}

function compare(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null); // those without a score stay last
  return a < b ? -sign : a > b ? sign : 0;
}

const inside = (value: number | null | undefined, [, low, high]: [string, number, number]): boolean =>
  value !== null && value !== undefined && value >= low && value < high;

interface Range {
  low: number;
  high: number;
  rivals: boolean; // there is more than one score
}

const range = (values: number[]): Range => ({ low: Math.min(...values), high: Math.max(...values), rivals: values.length > 1 });

/** The footnotes of what is shown, by number, each with its letter. */
function footnotesOf(board: Board, lines: Line[], columns: number[]): Map<number, string> {
  const width = board.columns.length;
  const used = new Set<number>();
  for (const line of lines) for (const column of columns) for (const mark of board.marks[line.row * width + column] ?? []) used.add(mark);
  return new Map([...used].sort((a, b) => a - b).map((mark, number) => [mark, letter(number)]));
}

const letter = (number: number): string =>
  (number >= 26 ? letter(Math.floor(number / 26) - 1) : "") + String.fromCharCode(97 + (number % 26));

function Cell({ board, cell, apart, range, footnotes }: { board: Board; cell: number; apart: boolean; range: Range; footnotes: Map<number, string> }) {
  const value = board.values[cell];
  const total = board.columns[cell % board.columns.length]!.kind === "total";
  if (!value) return <td class={total ? "empty total" : "empty"}>–</td>;
  const heat = range.high > range.low ? Math.round(((value[0] - range.low) / (range.high - range.low)) * (HEATS - 1)) : 0;
  const look = apart ? " apart" : ` h${heat}${range.rivals && value[0] === range.high ? " best" : ""}`;
  const low = board.low?.[cell];
  const high = board.high?.[cell];
  const marks = (board.marks[cell] ?? []).map((mark) => footnotes.get(mark)).join(",");
  const covered = board.covered[cell];
  const title = [low ? `95 %: ${points(low)} – ${points(high)}` : "", covered ? `over ${covered} tasks` : ""].filter(Boolean).join("; ");
  return (
    <td class={`score${look}${total ? " total" : ""}`} title={title || undefined}>
      {points(value)}
      {covered && <span class="part" aria-label={`over ${covered} tasks`}>{covered}</span>}
      {marks && <sup>{marks}</sup>}
    </td>
  );
}

/** The rank, a bar from the low to the high end of its interval, and the tie group's letter. */
function Rank({ board, row, ranked }: { board: Board; row: number; ranked: number }) {
  const rank = board.models.rank[row];
  if (rank === null || rank === undefined) return <span title="not ranked: its mean is over other tasks">–</span>;
  const low = board.models.low[row];
  const high = board.models.high[row];
  const tie = board.models.tie[row] ?? "";
  const at = (place: number): number => ((place - 1) / Math.max(1, ranked)) * 60;
  const bar = low !== null && low !== undefined && high !== null && high !== undefined;
  const label = `rank ${rank}${bar ? `, 95 %: ${low} to ${high}` : ""}${tie ? `, tie group ${tie}` : ""}`;
  return (
    <span class="place" title={label}>
      <b>{rank}</b>
      {bar && (
        <svg viewBox="0 0 60 10" width="60" height="10" role="img" aria-label={label}>
          <rect class="track" x="0" y="4" width="60" height="2" />
          <rect class={`interval tie${tieNumber(tie)}`} x={at(low)} y="2" width={Math.max(2, at(high + 1) - at(low))} height="6" rx="2" />
          <rect class="mark" x={at(rank)} y="0" width="2" height="10" />
        </svg>
      )}
      {tie && <span class={`letters tie${tieNumber(tie)}`}>{tie}</span>}
    </span>
  );
}

const tieNumber = (tie: string): number => (tie ? (tie.charCodeAt(0) - 65) % 6 : 0);
