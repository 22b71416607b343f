// Data come as classic scripts that call `embark(name, data)`: from the disk, nothing else may be loaded.
import { useEffect, useState } from "preact/hooks";

/** A number in full, for order and place, and its text, which the command line shows, too: Python alone rounds. */
export type Points = [number, string];

export interface Column {
  name: string;
  kind: "total" | "group" | "task";
  metric?: string;
  chance?: Points | null;
  groups?: string[];
}

export interface Board {
  name: string;
  rule: string;
  resampled: string;
  notes: string[];
  columns: Column[];
  models: {
    label: string[];
    name: string[];
    revision: string[];
    source: string[];
    rank: (number | null)[];
    low: (number | null)[];
    high: (number | null)[];
    tie: string[];
    tasks: number[];
    covered: string[]; // how many of the tasks the total is over: 41/53
  };
  values: (Points | null)[];
  low: (Points | null)[] | null;
  high: (Points | null)[] | null;
  marks: Record<number, number[]>;
  covered: Record<number, string>; // how many of its tasks a mean is over, where means differ in that
  apart: number[]; // cells of means over other tasks than the others of their column
  footnotes: string[];
}

export interface Models {
  name: string[];
  family: string[];
  type: string[];
  parameters: (number | null)[];
  dim: (number | null)[];
  price: (number | null)[];
  seconds: (number | null)[];
  modalities: string[][];
  access: string[];
  facts: [string, string][][];
}

export interface BoardEntry {
  name: string;
  file: string;
  family: string;
  about: string;
  size: string;
  tasks: number[]; // of the index
  models: number[]; // of the models
}

export interface Index {
  version: string;
  date: string;
  first: string;
  boards: BoardEntry[];
  tasks: { name: string[]; family: string[]; category: string[]; known: boolean[] };
  items: Record<string, string>; // task → file of its items
  plots: string[]; // boards that have plots
  reports: ReportEntry[]; // newest first
  live: boolean; // served: runs are followed
}

// A report that is kept with the results; `model` is empty where it is about several.
export interface ReportEntry {
  file: string;
  kind: string;
  title: string;
  model: string;
  revision: string;
  verdict: string;
  date: string;
}

export interface ReportSection {
  title: string;
  columns: string[];
  rows: [string, boolean, string[]][]; // the heading that a row is under, whether it is a total, and its cells
  notes: string[];
  caption: string; // of the figure, which has it in itself: for those who cannot see it
  figure: string; // SVG
}

export interface Report extends ReportEntry {
  sentences: string[];
  sections: ReportSection[];
}

export interface TaskFacts {
  family: string;
  category: string;
  metric: string;
  chance: Points | null;
  modalities: string[];
  facts: [string, string][];
  fingerprints: [string, string][];
  notes: string[];
  errata: { id: string; effect: string; what: string; evidence: string }[];
}

export interface Pair {
  a: string;
  b: string;
  sentence: string;
  tasks: { task: string[]; category: string[]; a: Points[]; b: Points[]; difference: Points[]; low: (Points | null)[]; high: (Points | null)[]; holm: string[]; verdict: string[]; items: number[] };
  categories: [string, Tally][];
  total: Tally;
  refused: [string, string][];
}

export interface Tally {
  wins: number;
  ties: number;
  losses: number;
  difference: Points;
  low: Points | null;
  high: Points | null;
}

// A part of an item: words, or media by the address of their thumbnail; what may not be shown has neither.
export interface Part {
  kind: "text" | "image" | "audio" | "video";
  text?: string;
  src?: string;
  frames?: number;
  hash?: string;
}

export interface Answer {
  right: boolean | null;
  value: Points | null; // the item's own score
  rank: number | null;
  predicted: string | null;
  top: [number, number][]; // contents and their similarities, best first
}

export interface ItemRow {
  id: string;
  part: string;
  query: number[]; // of contents
  gold: number[];
  label: string | null;
  answers: (Answer | null)[]; // by model
}

export interface Items {
  task: string;
  models: string[];
  note: string; // why there are no contents, where there are none
  contents: { id: string; parts: Part[] }[];
  items: ItemRow[];
  sample: number[];
  hardest: number[];
  failures: number[][]; // by model
  parts: { name: string[]; scores: (Points | null)[][] } | null; // by model and part
  flips: { a: number; b: number; only_a: number[]; only_b: number[]; count_a: number; count_b: number }[];
}

export interface Plots {
  pareto: Record<string, { unit: string; models: string[]; costs: number[]; scores: Points[]; front: boolean[]; notes: string[] }>;
  scaling: { group: string; models: string[]; sizes: number[]; scores: Points[]; slope: Points; low: Points; high: Points; level: number }[];
  correlation: { tasks: string[]; values: number[]; clusters: number[] } | null;
  languages: { models: string[]; rows: { language: string; scores: (Points | null)[]; covered: string[] }[] } | null;
}

export interface RunState {
  id: string;
  title: string;
  started: number;
  updated: number;
  ended: boolean;
  models?: string[];
  tasks?: number;
  seconds: number;
  cpu_seconds?: number | null;
  gpu_seconds?: number | null;
  predicted?: number | null; // seconds, of a plan
  embedded: number;
  reused: number;
  stages: { name: string; unit: string; done: number; total: number; count: string; speed: string; left: string }[];
  status: string;
  busy: number;
  waits: Record<string, number>;
  scores: [string, string, string][]; // model, task, score
  skipped: [string, string, string, string][]; // model, task, kind, why
  alive?: boolean;
}

export interface Runs {
  live: RunState[];
  done: {
    id: string;
    date: string;
    models: string[];
    tasks: number;
    items: number;
    embedded: number;
    embedding: number;
    scoring: number;
    seconds: number | null; // of the whole run, as long as its state is kept
    cpu_seconds: number | null;
    gpu_seconds: number | null;
    predicted: number | null;
    warnings: string[];
  }[];
}

type Waiting = { done: (data: unknown) => void; failed: (error: Error) => void };
const received = new Map<string, unknown>();
const waiting = new Map<string, Waiting>();

declare global {
  interface Window {
    embark: (name: string, data: unknown) => void;
  }
}

window.embark = (name, data) => {
  received.set(name, data);
  waiting.get(name)?.done(data);
  waiting.delete(name);
};

const promises = new Map<string, Promise<unknown>>();

/** The data of a name, loaded once; `fresh` asks again, for what changes while the page is open. */
export function load<T>(name: string, fresh = false): Promise<T> {
  if (!fresh && promises.has(name)) return promises.get(name) as Promise<T>;
  const promise = new Promise<unknown>((done, failed) => {
    waiting.set(name, { done, failed });
    const script = document.createElement("script");
    script.src = `data/${name}.js${fresh ? `?${Date.now()}` : ""}`;
    script.onload = () => {
      script.remove();
      if (waiting.get(name)?.done === done) failed(new Error(`data/${name}.js holds no data of that name`));
    };
    script.onerror = () => {
      script.remove();
      promises.delete(name);
      failed(new Error(`data/${name}.js cannot be loaded`));
    };
    document.head.append(script);
  });
  promises.set(name, promise);
  return promise as Promise<T>;
}

/** Data for a component: undefined while they load, null where there are none. */
export function useData<T>(name: string | null): T | null | undefined {
  const at = (): T | undefined => (name === null ? undefined : (received.get(name) as T | undefined));
  const [state, setState] = useState<{ name: string | null; data: T | null | undefined }>({ name, data: at() });
  useEffect(() => {
    let current = true;
    if (name !== null) {
      load<T>(name).then(
        (data) => current && setState({ name, data }),
        () => current && setState({ name, data: null }),
      );
    }
    return () => {
      current = false;
    };
  }, [name]);
  return name === null ? null : state.name === name ? state.data : at();
}
