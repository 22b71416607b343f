// Numbers and names as people and other programs read them.
import type { Points } from "./data";

export const points = (value: Points | null | undefined): string => value?.[1] ?? "";

/** The color of a score on a scale from 0 to 100 points, of eight. */
export const step = ([value]: Points): number => Math.max(0, Math.min(7, Math.floor(8 * value)));

/** The difference of two scores that nothing but the page compares, rounded as Python does: once, and ties to even. */
export function difference(a: Points, b: Points): Points {
  const value = 100 * (a[0] - b[0]);
  const tie = Number.isInteger(4 * value) && !Number.isInteger(2 * value); // .25 and .75 alone lie between two tenths
  const text = (tie ? (2 * Math.ceil(Math.floor(10 * value) / 2)) / 10 : value).toFixed(1);
  return [a[0] - b[0], text.startsWith("-") ? (Number(text) ? text : "+0.0") : `+${text}`];
}

/** A difference seen from the other side. */
export const negative = ([value, text]: Points): Points => [-value, Number(text) ? (text.startsWith("-") ? `+${text.slice(1)}` : `-${text.slice(1)}`) : text];

/** A similarity of vectors, which may be negative. */
export const similarity = (value: number): string => value.toFixed(3).replace(/^-(?=0\.000$)/, "").replace("-", "−");

export const amount = (value: number | null | undefined): string => {
  if (value === null || value === undefined) return "";
  for (const [size, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]] as const)
    if (value >= size) return `${(value / size).toPrecision(3).replace(/\.0+$|(\.\d*?)0+$/, "$1")} ${unit}`;
  return `${+value.toPrecision(3)}`;
};

export const counted = (count: number, word: string): string => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** A time as people say it: 42 s, 3 min 10 s, 2 h 5 min. */
export const span = (seconds: number): string => {
  if (seconds < 60) return `${seconds < 10 ? +seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return seconds < 3600 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

/** Seconds of a device in hours. */
export const hours = (seconds: number | null | undefined): string =>
  seconds === null || seconds === undefined ? "" : seconds > 0 && seconds < 3.6 ? "<0.001" : `${+(seconds / 3600).toPrecision(2)}`;

/** Models without the organization, for narrow places. */
export const short = (model: string): string => model.slice(model.lastIndexOf("/") + 1);

/** A name that is several words, apart: ImageClustering → Image Clustering. */
export const words = (name: string): string => name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=\w)(?=\()/g, " ");

const LANGUAGES = new Intl.DisplayNames("en", { type: "language", fallback: "none" });

/** Languages by their names in English: fra → French, nor + nno → Norwegian + Norwegian Nynorsk. */
export const language = (codes: string): string =>
  codes
    .split(" + ")
    .map((code) => {
      try {
        return LANGUAGES.of(code) ?? "";
      } catch {
        return ""; // not a code of a language
      }
    })
    .filter(Boolean)
    .join(" + ");

// Characters that move the cursor, end the line or turn the direction of writing, as in escape.py.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/g;
const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/;

const LONGEST = 2000; // letters of a text that are shown

/** Text without control characters, which are spelled out; the end of one that fills pages is left out. */
export const plain = (text: string): string =>
  (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)
    .split(new RegExp(`(${PAIRS.source})`))
    .map((piece) =>
      PAIRS.test(piece) ? piece : piece.replace(CONTROLS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`),
    )
    .join("");

/** A cell that spreadsheets take for text. */
function csvCell(value: string | number): string {
  if (typeof value === "number") return `${value}`;
  const text = plain(value);
  const inert = /^\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

export const csv = (rows: (string | number)[][]): string => rows.map((row) => row.map(csvCell).join(",")).join("\n") + "\n";

const LATEX: Record<string, string> = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--",
  "<": "\\textless{}", ">": "\\textgreater{}", "[": "{[}", "]": "{]}", "*": "{*}",
};

const latexCell = (text: string): string =>
  plain(text).replace(/[\\~^–<>[\]*&%$#_{}]/g, (sign) => LATEX[sign] ?? `\\${sign}`);

/** A booktabs table; the first column holds words, the others numbers. */
export function latex(head: string[], rows: string[][]): string {
  const lines = [head, ...rows].map((row) => `${row.map(latexCell).join(" & ")} \\\\`);
  lines.splice(1, 0, "\\midrule");
  return `\\begin{tabular}{l${"r".repeat(head.length - 1)}}\n\\toprule\n${lines.join("\n")}\n\\bottomrule\n\\end{tabular}\n`;
}
