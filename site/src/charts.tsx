// Drawings as SVG: axes, points, bars with intervals.
import type { Points } from "./data";
import { plain } from "./format";

export interface Dot {
  x: number;
  y: number;
  score: string; // as people read it
  label: string;
  strong?: boolean;
}

interface Frame {
  width: number;
  height: number;
  left: number;
  bottom: number;
}

const FRAME: Frame = { width: 960, height: 500, left: 46, bottom: 42 };
const SMALL: Frame = { width: 400, height: 270, left: 36, bottom: 40 }; // of several side by side, or on a phone

/** Points of a plane, names on hover and beside the strong ones; strong ones are joined as a stair or by a line. */
export function Scatter({ dots, x, y, log, line, label, small = innerWidth <= 700 }: { dots: Dot[]; x: string; y: string; log?: boolean; line?: { from: [number, number]; to: [number, number] }; label: string; small?: boolean }) {
  const { width, height, left, bottom } = small ? SMALL : FRAME;
  const xs = dots.map((dot) => (log ? Math.log10(dot.x) : dot.x));
  const ys = dots.map((dot) => dot.y);
  const room = dots.some((dot) => dot.strong) ? 0.2 : 0.08; // for names, which stand left of their points
  const [x0, x1] = padded(Math.min(...xs), Math.max(...xs), room);
  const [y0, y1] = padded(Math.min(...ys), Math.max(...ys));
  const at = (value: number): number => left + (((log ? Math.log10(value) : value) - x0) / (x1 - x0)) * (width - left - 12);
  const up = (value: number): number => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - 22);
  const strong = dots.filter((dot) => dot.strong).sort((a, b) => a.x - b.x);
  const stair = strong.map((dot, number) => `${number ? `H${at(dot.x)}V${up(dot.y)}` : `M${at(dot.x)},${up(dot.y)}`}`).join("");
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {ticks(y0, y1).map((tick) => (
        <g key={tick}>
          <line class="grid" x1={left} x2={width - 12} y1={up(tick)} y2={up(tick)} />
          <text x={left - 6} y={up(tick) + 4} text-anchor="end">{tick}</text>
        </g>
      ))}
      {(log ? decades(x0, x1, small) : ticks(x0, x1)).map((tick) => (
        <g key={tick}>
          <line class="grid" x1={at(tick)} x2={at(tick)} y1={22} y2={height - bottom} />
          <text x={at(tick)} y={height - bottom + 16} text-anchor="middle">{tick >= 10000 ? `${tick / 1000}k` : tick}</text>
        </g>
      ))}
      <text class="axis" x={width - 12} y={height - 4} text-anchor="end">{x}</text>
      <text class="axis" x={small ? 4 : left - 38} y={12}>{y}</text>
      {line && <line class="trend" x1={at(line.from[0])} y1={up(line.from[1])} x2={at(line.to[0])} y2={up(line.to[1])} />}
      {stair && <path class="under" d={`${stair}H${width - 12}V${height - bottom}H${at(strong[0]!.x)}Z`} />}
      {stair && <path class="stair" d={stair} />}
      {dots.map((dot, number) => (
        <circle key={number} class={dot.strong ? "dot strong" : "dot"} cx={at(dot.x)} cy={up(dot.y)} r={dot.strong ? 5 : 4}>
          <title>{`${plain(dot.label)}: ${dot.score} at ${dot.x}`}</title>
        </circle>
      ))}
      {placed(strong.map((dot) => ({ text: plain(dot.label.slice(0, 40)), x: at(dot.x), y: up(dot.y) })), left).map((name) => (
        <text key={name.text} class="name" x={name.x} y={name.y} text-anchor={name.end ? "end" : "start"}>{name.text}</text>
      ))}
    </svg>
  );
}

interface Spot {
  text: string;
  x: number;
  y: number;
}

interface Name extends Spot {
  end: boolean;
}

const LETTER = 6.4; // units of a letter, on average
const LINE = 13; // units of a line of letters

/** Names beside their points: above and left of them, where a front has nothing, else below; without room, on hover only. */
function placed(spots: Spot[], edge: number): Name[] {
  const free: Name[] = [];
  const left = (name: Name): number => (name.end ? name.x - LETTER * name.text.length : name.x);
  const apart = (name: Name): boolean =>
    free.every((other) => Math.abs(other.y - name.y) > LINE || left(other) + LETTER * other.text.length < left(name) || left(name) + LETTER * name.text.length < left(other));
  for (const { text, x, y } of spots) {
    const ends = [-5, -5 - LINE].map((up): Name => ({ text, x: x - 8, y: y + up, end: true })).filter((name) => left(name) > edge);
    const place = [...ends, { text, x: x + 4, y: y + 18, end: false }].find(apart);
    if (place && (place.end || !ends.length)) free.push(place);
  }
  return free;
}

function padded(low: number, high: number, below = 0.08): [number, number] {
  const range = high - low || Math.abs(high) || 1;
  return [low - range * below, high + range * 0.08];
}

function ticks(low: number, high: number): number[] {
  const step = 10 ** Math.floor(Math.log10(high - low || 1));
  const size = [step / 5, step / 2, step, step * 2].find((width) => (high - low) / width <= 8) ?? step * 5;
  const first = Math.ceil(low / size);
  return Array.from({ length: Math.max(0, Math.floor(high / size) - first + 1) }, (_, number) => +((first + number) * size).toPrecision(10));
}

function decades(low: number, high: number, few: boolean): number[] {
  const all: number[] = [];
  for (let power = Math.floor(low) - 1; power <= high; power++) for (const digit of few ? [1, 3] : [1, 2, 5]) all.push(+(digit * 10 ** power).toPrecision(3));
  return all.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
}

const ENDS = [1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100]; // of a scale of differences, in points

/** The end of a scale that holds these differences: a round number of points. */
export function scaleEnd(differences: Points[]): number {
  const most = Math.max(...differences.map(([value]) => 100 * Math.abs(value)), 0);
  return ENDS.find((end) => end >= most) ?? ENDS[ENDS.length - 1]!;
}

/** A difference with its interval, as a bar from zero on a common scale, as wide as there is room. */
export function Difference({ value, low, high, most, label }: { value: Points; low: Points | null; high: Points | null; most: number; label: string }) {
  const at = ([number]: Points): number => 50 + (Math.max(-most, Math.min(most, 100 * number)) / most) * 49;
  const ends = low && high ? [at(low), at(high)] : [];
  return (
    <svg width="100%" height="18" role="img" aria-label={label}>
      <title>{label}</title>
      <rect class={value[0] > 0 ? "bar-a soft-bar" : "bar-b soft-bar"} x={`${Math.min(50, at(value))}%`} y="4" width={`${Math.max(0.4, Math.abs(at(value) - 50))}%`} height="10" rx="1.5" />
      <line class="zero" x1="50%" x2="50%" y1="0" y2="18" />
      {ends.length > 0 && <line class="whisker" x1={`${ends[0]}%`} x2={`${ends[1]}%`} y1="9" y2="9" />}
      {ends.map((end, number) => <line key={number} class="whisker" x1={`${end}%`} x2={`${end}%`} y1="6" y2="12" />)}
    </svg>
  );
}

/** The head of a column of differences: the ends of its scale. */
export function Scale({ most }: { most: number }) {
  return (
    <span class="scale">
      <span>−{most}</span>
      <span>0</span>
      <span>+{most}</span>
    </span>
  );
}

/** A score from 0 to 100 as a bar as wide as there is room, with its interval and the level of chance. */
export function ScoreBar({ value, low, high, chance }: { value: Points; low?: Points | null; high?: Points | null; chance?: Points | null }) {
  const at = ([number]: Points): string => `${Math.max(0, Math.min(100, 100 * number))}%`;
  const ends = low && high ? ([low, high] as const) : null;
  return (
    <svg width="100%" height="16" aria-hidden="true">
      <rect class="track" x="0" y="7" width="100%" height="2" />
      <rect class="bar-a soft-bar" x="0" y="3" width={at(value)} height="10" rx="1.5" />
      {ends && <line class="whisker" x1={at(ends[0])} x2={at(ends[1])} y1="8" y2="8" />}
      {ends?.map((end, number) => <line key={number} class="whisker" x1={at(end)} x2={at(end)} y1="5" y2="11" />)}
      {chance && <line class="chance" x1={at(chance)} x2={at(chance)} y1="0" y2="16" />}
    </svg>
  );
}

/** A wide drawing that scrolls on a narrow screen. */
export function Wide({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return (
    <div class="wide-box" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
