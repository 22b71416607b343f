// Plots of a board: score against cost, profile, correlations of tasks, scaling, languages, spread of the tasks.
import type { Board, Column, Index, Plots, Points } from "../data";
import { useData } from "../data";
import { Scatter, Wide } from "../charts";
import { language, plain, points, short, step, words } from "../format";
import { Broken, Choice, Head, Loading } from "../parts";
import { address, setParams, usePlace } from "../url";

const KINDS: [string, string][] = [
  ["parameters", "Score and size"],
  ["dim", "Score and dimension"],
  ["time", "Score and time"],
  ["price", "Score and price"],
  ["profile", "Capability profile"],
  ["scaling", "Scaling"],
  ["correlation", "Correlation of tasks"],
  ["languages", "Languages"],
  ["spread", "Spread over models"],
];
const LEADS: Record<string, string> = {
  parameters: "What a score costs in parameters.",
  dim: "What a score costs in numbers to store for each item.",
  time: "What a score costs in time to embed.",
  price: "What a score costs in money.",
  profile: "What each model is good at: its scores by group of tasks.",
  scaling: "How much ten times the parameters bring, by category of tasks.",
  correlation: "Which tasks rank models alike, and so measure the same thing.",
  languages: "How good the best models are in each language.",
  spread: "How far models lie apart on each task, and how far from chance.",
};
const PROFILES = 6; // models that are drawn unless others are pinned

export function PlotsView({ index }: { index: Index }) {
  const { name, params } = usePlace();
  const entries = index.boards.filter((board) => index.plots.includes(board.name));
  const entry = entries.find((board) => board.name === (name || index.first)) ?? entries[0];
  const board = useData<Board>(entry ? `board/${entry.file}` : null);
  const plots = useData<Plots>(entry ? `plots/${entry.file}` : null);
  if (!entry) return <><h1>Plots</h1><p>No board has the three models that a plot needs.</p></>;
  if (!board || !plots) return <Loading data={plots} />;
  const kinds = KINDS.filter(([kind]) => has(plots, kind));
  const kind = kinds.some(([other]) => other === params.get("plot")) ? params.get("plot")! : kinds[0]![0];
  return (
    <>
      <Head view="Plots" title={entry.name} lead={LEADS[kind]}>
        <Choice label="Benchmark" value={entry.name} options={entries.map((other) => other.name)} onChange={(value) => (location.hash = address("plots", value, { plot: kind }))} />
      </Head>
      <nav class="pills" aria-label="Kinds of plots" ref={(pills) => pills?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" })}>
        {kinds.map(([other, label]) => (
          <a key={other} href={address("plots", entry.name, { ...Object.fromEntries(params), plot: other })} aria-current={other === kind ? "page" : undefined}>{label}</a>
        ))}
      </nav>
      <Plot kind={kind} board={board} plots={plots} />
    </>
  );
}

function has(plots: Plots, kind: string): boolean {
  if (kind in plots.pareto) return new Set(plots.pareto[kind]!.costs).size > 1; // models of one cost are a column
  if (kind === "scaling") return plots.scaling.length > 0;
  if (kind === "correlation") return plots.correlation !== null;
  if (kind === "languages") return plots.languages !== null;
  return kind === "profile" || kind === "spread";
}

function Plot({ kind, board, plots }: { kind: string; board: Board; plots: Plots }) {
  const front = plots.pareto[kind];
  if (front) {
    const dots = front.models.map((model, row) => ({ x: front.costs[row]!, y: 100 * front.scores[row]![0], score: points(front.scores[row]), label: short(model), strong: front.front[row] }));
    const costs = front.costs.filter((cost) => cost > 0);
    return (
      <figure class="card">
        <Scatter dots={dots} x={front.unit} y="total score" log={Math.max(...costs) > 4 * Math.min(...costs) && Math.min(...front.costs) > 0} label={`Total against ${front.unit}; models that no other beats in both: ${dots.filter((dot) => dot.strong).map((dot) => dot.label).join(", ")}`} />
        <figcaption>A dot is a model; the blue line joins those that no other beats in both. {front.notes.map(plain).join(" ")}</figcaption>
      </figure>
    );
  }
  if (kind === "scaling") return <Scaling plots={plots} />;
  if (kind === "correlation") return <Correlation correlation={plots.correlation!} />;
  if (kind === "languages") return <Languages languages={plots.languages!} />;
  if (kind === "spread") return <Spread board={board} />;
  return <Profile board={board} />;
}

function Scaling({ plots }: { plots: Plots }) {
  return (
    <div class="multiples">
      {plots.scaling.map((trend) => {
        const [low, high] = [Math.min(...trend.sizes), Math.max(...trend.sizes)];
        const at = (size: number): [number, number] => [size, trend.level + trend.slope[0] * Math.log10(size)];
        return (
          <figure key={trend.group} class="card">
            <Scatter dots={trend.models.map((model, row) => ({ x: trend.sizes[row]!, y: 100 * trend.scores[row]![0], score: points(trend.scores[row]), label: short(model) }))} x="parameters (millions)" y={plain(trend.group)} log line={{ from: at(low), to: at(high) }} label={`${trend.group} against size`} small />
            <figcaption><b class={trend.low[0] > 0 ? "win" : trend.high[0] < 0 ? "loss" : "tie"}>{points(trend.slope)} points</b> for ten times the parameters (95 %: {points(trend.low)} to {points(trend.high)})</figcaption>
          </figure>
        );
      })}
    </div>
  );
}

function Correlation({ correlation }: { correlation: NonNullable<Plots["correlation"]> }) {
  const count = correlation.tasks.length;
  const names = 190; // room for them
  const size = Math.max(9, Math.min(24, Math.floor(900 / count))); // so that names have room
  return (
    <figure>
      <div class="scroll" tabIndex={0} role="region" aria-label="Correlations of tasks">
        <svg width={count * size + names + 10} height={count * size + 4} role="img" aria-label={`Rank correlations of ${count} tasks over the models, in the order of their clusters`}>
          {correlation.tasks.map((task, row) => (
            <g key={task}>
              {correlation.tasks.map((other, column) => {
                const value = correlation.values[row * count + column]!;
                return (
                  <rect key={column} class={value < 0 ? "minus" : "plus"} opacity={Math.abs(value) / 100} x={names + column * size} y={row * size} width={size} height={size}>
                    <title>{`${plain(task)} and ${plain(other)}: ${(value / 100).toFixed(2)}`}</title>
                  </rect>
                );
              })}
              <text class={size < 12 ? "small" : ""} x={names - 4} y={row * size + size - 2} text-anchor="end">{plain(task.slice(0, size < 12 ? 38 : 26))}</text>
            </g>
          ))}
        </svg>
      </div>
      <ul class="legend">
        <li>
          −1 <span class="ramp" aria-hidden="true"><i class="minus" /><i class="minus p75" /><i class="minus p50" /><i class="minus p25" /><i class="p0" /><i class="plus p25" /><i class="plus p50" /><i class="plus p75" /><i class="plus" /></span> +1
        </li>
      </ul>
      <figcaption>Spearman correlations of two tasks over the models that have all tasks; neighbours rank models alike. {new Set(correlation.clusters).size} clusters at 0.8.</figcaption>
    </figure>
  );
}

function Languages({ languages }: { languages: NonNullable<Plots["languages"]> }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Scores by language">
      <table class="board">
        <thead><tr><th scope="col" class="name">Language</th>{languages.models.map((model) => <th scope="col" key={model}><span class="narrow"><Broken text={plain(short(model))} /></span></th>)}</tr></thead>
        <tbody>
          {languages.rows.map((row) => {
            return (
              <tr key={row.language}>
                <th scope="row" class="name">{language(row.language)} <small>{plain(row.language)}</small></th>
                {row.scores.map((score, number) => (score === null ? <td class="empty" key={number}>–</td> : <td key={number} class={row.covered[number] ? "score apart" : `score h${step(score)}`}>{points(score)}{row.covered[number] && <span class="part" aria-label={`over ${row.covered[number]} tasks`}>{row.covered[number]}</span>}</td>))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Every model's score on each task as a dot on a line, with the level of chance. */
function Spread({ board }: { board: Board }) {
  const width = board.columns.length;
  const tasks = board.columns.map((column, number) => ({ column, number })).filter(({ column }) => column.kind === "task");
  const at = (value: number): number => 285 + Math.max(-0.05, value) * 540;
  return (
    <figure class="card">
      <Wide label="Spread over models">
      <svg class="chart long" viewBox={`0 -18 840 ${tasks.length * 18 + 48}`} role="img" aria-label={`Scores of ${board.models.name.length} models on each of ${tasks.length} tasks, with chance`}>
        {[0, 25, 50, 75, 100].map((tick) => (
          <g key={tick}>
            <line class="grid" x1={at(tick / 100)} x2={at(tick / 100)} y1="0" y2={tasks.length * 18 + 6} />
            {[-5, tasks.length * 18 + 22].map((y) => <text key={y} x={at(tick / 100)} y={y} text-anchor="middle">{tick}</text>)}
          </g>
        ))}
        {tasks.map(({ column, number }, line) => (
          <g key={column.name}>
            <text x="250" y={line * 18 + 14} text-anchor="end">{plain(column.name.slice(0, 38))}</text>
            {board.models.label.map((label, row) => {
              const value = board.values[row * width + number];
              return value ? (
                <circle key={row} class="dot faint" cx={at(value[0])} cy={line * 18 + 10} r="3.5"><title>{`${plain(label)}: ${points(value)}`}</title></circle>
              ) : null;
            })}
            {column.chance && <line class="chance" x1={at(column.chance[0])} x2={at(column.chance[0])} y1={line * 18 + 3} y2={line * 18 + 17}><title>by chance {points(column.chance)}</title></line>}
          </g>
        ))}
      </svg>
      </Wide>
      <figcaption>A blue dot is the score of a model; the short red line is what chance would get.</figcaption>
    </figure>
  );
}

interface Axis {
  column: Column;
  number: number;
}

/** A score that may stand beside the others of its column; none of a mean over other tasks. */
const drawn = (board: Board, cell: number): Points | null => (board.apart.includes(cell) ? null : (board.values[cell] ?? null));

/** Parallel coordinates over the groups, or over few tasks; as a radar, if asked. */
function Profile({ board }: { board: Board }) {
  const { params } = usePlace();
  const width = board.columns.length;
  const groups = board.columns.map((column, number) => ({ column, number })).filter(({ column }) => column.kind === "group");
  const axes = groups.length > 2 ? groups : board.columns.map((column, number) => ({ column, number })).filter(({ column }) => column.kind === "task").slice(0, 16);
  const pins = (params.get("pin") ?? "").split("\n").filter((label) => board.models.label.includes(label));
  const shown = pins.length ? pins : board.models.label.slice(0, PROFILES);
  const at = (axis: number): number => 40 + (axis / Math.max(1, axes.length - 1)) * 840;
  const up = (value: number): number => 300 - Math.max(0, value) * 280;
  return (
    <figure class="card">
      <div class="toolbar">
        <Choice label="Drawn as" value={params.get("shape") ?? ""} options={[["", "lines"], ["radar", "radar"]]} onChange={(shape) => setParams({ shape })} />
        <Choice label="Add a model" value="" any options={board.models.label.filter((label) => !shown.includes(label))} onChange={(label) => label && setParams({ pin: [...shown, label].join("\n") })} />
        {shown.map((label, number) => (
          <button key={label} type="button" class={`chip tie${number % 6}`} onClick={() => setParams({ pin: shown.filter((other) => other !== label).join("\n") })}>
            {plain(short(label))} <span aria-hidden="true">×</span><span class="unseen">remove</span>
          </button>
        ))}
      </div>
      <Wide label="Capability profile">{params.get("shape") === "radar" ? <Radar board={board} axes={axes} shown={shown} /> : <svg class="chart wide" viewBox="0 0 1010 430" role="img" aria-label={`Scores by group of ${shown.map(short).join(", ")}`}>
        {axes.map(({ column }, axis) => (
          <g key={column.name}>
            <line class="grid" x1={at(axis)} x2={at(axis)} y1="20" y2="300" />
            <text transform={`translate(${at(axis)},316) rotate(32)`}>{plain(words(column.name).slice(0, 32))}</text>
          </g>
        ))}
        {[0, 25, 50, 75, 100].map((tick) => (
          <g key={tick}>
            <line class="grid" x1="40" x2="880" y1={up(tick / 100)} y2={up(tick / 100)} />
            <text x="30" y={up(tick / 100) + 4} text-anchor="end">{tick}</text>
          </g>
        ))}
        {shown.map((label, number) => {
          const row = board.models.label.indexOf(label);
          const spots = axes.flatMap(({ column, number: cell }, axis) => {
            const value = drawn(board, row * width + cell);
            return value ? [{ x: at(axis), y: up(value[0]), value, name: column.name }] : [];
          });
          return (
            <g key={label} class={`line tie${number % 6}`}>
              <path d={spots.map((spot, place) => `${place ? "L" : "M"}${spot.x},${spot.y}`).join("")} />
              {spots.map((spot, place) => <circle key={place} cx={spot.x} cy={spot.y} r="3.5"><title>{`${plain(label)}, ${plain(spot.name)}: ${points(spot.value)}`}</title></circle>)}
            </g>
          );
        })}
      </svg>}</Wide>
      {board.apart.length > 0 && <figcaption>A mean over other tasks than the others of its group is not drawn.</figcaption>}
    </figure>
  );
}

/** The same scores on spokes around a center, which is zero. */
function Radar({ board, axes, shown }: { board: Board; axes: Axis[]; shown: string[] }) {
  const width = board.columns.length;
  const spot = (axis: number, value: number): [number, number] => {
    const angle = (axis / axes.length) * 2 * Math.PI;
    const radius = Math.max(0, value) * 170;
    return [350 + radius * Math.sin(angle), 210 - radius * Math.cos(angle)];
  };
  const ring = (value: number): string => axes.map((_, axis) => spot(axis, value).join(",")).join(" ");
  return (
    <svg class="chart round" viewBox="-50 0 800 420" role="img" aria-label={`Scores by group of ${shown.map(short).join(", ")}, as a radar`}>
      {[0.25, 0.5, 0.75, 1].map((value) => <polygon key={value} class="ring" points={ring(value)} />)}
      {axes.map(({ column }, axis) => {
        const [x, y] = spot(axis, 1);
        const [tx, ty] = spot(axis, 1.07);
        const anchor = Math.abs(tx - 350) < 12 ? "middle" : tx > 350 ? "start" : "end";
        return (
          <g key={column.name}>
            <line class="grid" x1="350" y1="210" x2={x} y2={y} />
            <text x={tx} y={ty + 4} text-anchor={anchor}>{plain(words(column.name).slice(0, 32))}</text>
          </g>
        );
      })}
      {shown.map((label, number) => {
        const row = board.models.label.indexOf(label);
        const spots = axes.flatMap(({ number: cell }, axis) => {
          const value = drawn(board, row * width + cell);
          return value ? [{ point: spot(axis, value[0]), value, axis }] : [];
        });
        return (
          <g key={label} class={`line tie${number % 6}`}>
            <path d={spots.length ? `M${spots.map(({ point }) => point.join(",")).join("L")}Z` : ""} />
            {spots.map(({ point, value, axis }) => <circle key={axis} cx={point[0]} cy={point[1]} r="3"><title>{`${plain(label)}, ${plain(axes[axis]!.column.name)}: ${points(value)}`}</title></circle>)}
          </g>
        );
      })}
    </svg>
  );
}
