// Items with their contents, right answers, and what models made of them.
import { useEffect, useState } from "preact/hooks";
import type { Answer, ItemRow, Items, Part } from "./data";
import { plain, points, short, similarity } from "./format";

export function Contents({ items, numbers }: { items: Items; numbers: number[] }) {
  return (
    <>
      {numbers.map((number) => (
        <Content key={number} id={items.contents[number]!.id} parts={items.contents[number]!.parts} />
      ))}
    </>
  );
}

export function Content({ id, parts }: { id: string; parts: Part[] }) {
  return (
    <span class="content">
      {parts.map((part, number) => (
        <PartView key={number} part={part} name={id} />
      ))}
    </span>
  );
}

function PartView({ part, name }: { part: Part; name: string }) {
  if (part.kind === "text") return <q>{plain(part.text ?? "")}</q>;
  if (!part.src) return <span class="hint">[{part.kind} {part.hash?.slice(0, 8)}]</span>;
  if (part.kind === "image") return <img loading="lazy" src={part.src} alt={`item ${plain(name)}`} />;
  if (part.kind === "audio") return <audio controls preload="metadata" src={part.src} aria-label={`item ${plain(name)}`} />;
  return <Film src={part.src} frames={part.frames ?? 1} name={name} />;
}

/** The frames of a film lie side by side in one picture; a button plays them. */
function Film({ src, frames, name }: { src: string; frames: number; name: string }) {
  const [frame, setFrame] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => setFrame((number) => (number + 1) % frames), 300);
    return () => clearInterval(timer);
  }, [playing, frames]);
  return (
    <span class="film">
      <span class="screen" style={{ aspectRatio: size[1] ? `${size[0] / frames} / ${size[1]}` : undefined }}>
        <img
          src={src}
          alt={`film ${plain(name)}, ${frames} frames`}
          style={{ width: `${frames * 100}%`, transform: `translateX(${(-frame / frames) * 100}%)` }}
          onLoad={(event) => setSize([event.currentTarget.naturalWidth, event.currentTarget.naturalHeight])}
        />
      </span>
      <button type="button" aria-pressed={playing} onClick={() => setPlaying(!playing)}>
        {playing ? "Pause" : "Play"}
      </button>
      <label class="inline">
        <span class="unseen">frame</span>
        <input type="range" min={0} max={frames - 1} value={frame} onInput={(event) => setFrame(Number(event.currentTarget.value))} />
      </label>
    </span>
  );
}

export function ItemCard({ items, number, models }: { items: Items; number: number; models?: number[] }) {
  const item = items.items[number]!;
  const shown = models ?? items.models.map((_, model) => model);
  return (
    <article class="item">
      <header>
        item <b>{plain(item.id)}</b>
        {item.part && <span class="tag">{plain(item.part)}</span>}
      </header>
      {(item.query.length > 0 || item.gold.length > 0 || item.label !== null) && (
        <div class="ask">
          {item.query.length > 0 && (
            <div>
              <span class="word">asked</span>
              <Contents items={items} numbers={item.query} />
            </div>
          )}
          <Gold items={items} item={item} />
        </div>
      )}
      {shown.map((model) => (
        <AnswerView key={model} items={items} item={item} model={items.models[model]!} answer={item.answers[model] ?? null} />
      ))}
    </article>
  );
}

function Gold({ items, item }: { items: Items; item: ItemRow }) {
  if (!item.gold.length && item.label === null) return null;
  return (
    <div class="gold">
      <span class="word">right answer</span>
      {item.label !== null && <q>{plain(item.label)}</q>}
      <Contents items={items} numbers={item.gold} />
    </div>
  );
}

function AnswerView({ items, item, model, answer }: { items: Items; item: ItemRow; model: string; answer: Answer | null }) {
  if (!answer) return null;
  const mark = answer.right === null ? "" : answer.right ? "✓" : "✗";
  return (
    <div class={`answer ${answer.right === null ? "" : answer.right ? "right" : "wrong"}`}>
      <span class="word">
        <b class="mark-of">{mark}</b> {plain(short(model))}
        {answer.right !== null && <span class="unseen">{answer.right ? " is right" : " is wrong"}</span>}
        {answer.rank !== null && answer.rank > 0 && <small> · right answer at rank {answer.rank}</small>}
        {answer.rank !== null && answer.rank <= 0 && <small> · right answer below the ranks that are counted</small>}
        {answer.rank === null && answer.right === null && answer.value !== null && <small> {points(answer.value)}</small>}
      </span>
      {answer.top.length ? (
        <ol class="top">
          {answer.top.map(([content, score], place) => (
            <li key={place} class={item.gold.includes(content) || items.contents[content]!.id === item.label ? "hit" : ""}>
              <Content id={items.contents[content]!.id} parts={items.contents[content]!.parts} />
              <small>{similarity(score)}</small>
            </li>
          ))}
        </ol>
      ) : (
        answer.predicted !== null && <q>{plain(answer.predicted)}</q>
      )}
    </div>
  );
}

export function Gallery({ items, numbers, models }: { items: Items; numbers: number[]; models?: number[] }) {
  return (
    <div class="gallery">
      {numbers.map((number) => (
        <ItemCard key={number} items={items} number={number} models={models} />
      ))}
    </div>
  );
}
