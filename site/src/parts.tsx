// Small parts that several views share.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { plain } from "./format";

export function Choice({ label, value, options, onChange, any = false }: {
  label: string;
  value: string;
  options: (string | [string, string])[];
  onChange: (value: string) => void;
  any?: boolean | string; // an option that means none of them, and what it is called
}) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {any && <option value="">{any === true ? "any" : any}</option>}
        {options.map((option) => {
          const [name, text] = typeof option === "string" ? [option, option] : option;
          return <option value={name} key={name} selected={name === value}>{plain(text)}</option>;
        })}
      </select>
    </label>
  );
}

/** The heading of a view: which one it is, of what, what it tells in a sentence, and what can be chosen. */
export function Head({ view, title = "", lead, children }: { view: string; title?: string; lead?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="head">
      <div class="title">
        <h1>
          {title && <small>{view} </small>}
          {plain(title || view)}
        </h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="choices">{children}</div>}
    </header>
  );
}

/** Few numbers that stand out, each with its name, and a note where one needs it. */
export function Tiles({ tiles }: { tiles: (readonly [string, string, string?])[] }) {
  return (
    <dl class="tiles">
      {tiles.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {plain(value)}
            {note && <small>{plain(note)}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The name of a model; the organization before it is less weighty, and above it on a phone. */
export function ModelName({ label }: { label: string }) {
  const text = plain(label);
  const end = text.indexOf("/") + 1;
  return (
    <>
      {end > 0 && <span class="organization">{text.slice(0, end)}</span>}
      {text.slice(end)}
    </>
  );
}

/** A name that may be broken between its words: ImageClustering, patch14-384. */
export function Broken({ text }: { text: string }) {
  return (
    <>
      {text.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[-_/])|(?=\()/).map((piece, number) => (
        <>
          {number > 0 && <wbr />}
          {piece}
        </>
      ))}
    </>
  );
}

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [done, setDone] = useState("");
  const copy = async (): Promise<void> => {
    const content = text();
    try {
      await navigator.clipboard.writeText(content);
    } catch {
      const area = document.createElement("textarea"); // where the page may not write to the clipboard
      area.value = content;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setDone("copied");
    setTimeout(() => setDone(""), 1500);
  };
  return (
    <button type="button" onClick={copy}>
      {label}
      <span role="status">{done && ` – ${done}`}</span>
    </button>
  );
}

export function Loading({ data }: { data: unknown }) {
  return data === null ? <p>These data are not part of this page.</p> : <p class="hint">Loading…</p>;
}

export function Notes({ notes, kind = "" }: { notes: string[]; kind?: string }) {
  return notes.length ? (
    <ul class={`notes ${kind}`}>
      {notes.map((note) => (
        <li key={note}>{plain(note)}</li>
      ))}
    </ul>
  ) : null;
}

export function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, text], number) => (
        <div key={number}>
          <dt>{number && facts[number - 1]![0] === name ? "" : plain(name)}</dt>
          <dd>{plain(text)}</dd>
        </div>
      ))}
    </dl>
  );
}
