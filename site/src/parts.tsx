// Small parts that several views share.
import { useState } from "preact/hooks";
import { plain } from "./format";

export function Choice({ label, value, options, onChange, any = false }: {
  label: string;
  value: string;
  options: (string | [string, string])[];
  onChange: (value: string) => void;
  any?: boolean;
}) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {any && <option value="">any</option>}
        {options.map((option) => {
          const [name, text] = typeof option === "string" ? [option, option] : option;
          return <option value={name} key={name} selected={name === value}>{plain(text)}</option>;
        })}
      </select>
    </label>
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

export function Notes({ notes }: { notes: string[] }) {
  return notes.length ? (
    <ul class="notes">
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
