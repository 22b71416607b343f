// The page: a heading with the views, and the view that the address names.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "./style.css";
import type { Index } from "./data";
import { useData } from "./data";
import { Loading } from "./parts";
import { address, usePlace } from "./url";
import { BoardView } from "./views/board";
import { CompareView } from "./views/compare";
import { ModelView } from "./views/model";
import { PlotsView } from "./views/plots";
import { RunView } from "./views/run";
import { TaskView } from "./views/task";

const VIEWS = [
  { name: "board", label: "Leaderboard", show: BoardView },
  { name: "plots", label: "Plots", show: PlotsView },
  { name: "compare", label: "Compare", show: CompareView },
  { name: "task", label: "Tasks", show: TaskView },
  { name: "model", label: "Models", show: ModelView },
  { name: "run", label: "Runs", show: RunView },
];

function App() {
  const index = useData<Index>("index");
  const place = usePlace();
  const [theme, setTheme] = useState(stored("theme"));
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("embark-theme", theme);
    } catch {
      // nothing may be stored
    }
  }, [theme]);
  const view = VIEWS.find(({ name }) => name === place.view) ?? VIEWS[0]!;
  useEffect(() => {
    document.title = `${place.name || view.label} – embark`;
  }, [place.name, view]);
  const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={address("board")}>
          <img src="icon.svg" alt="" />
          embark
        </a>
        <nav aria-label="Views">
          {VIEWS.map(({ name, label }) => (
            <a key={name} href={address(name)} aria-current={view.name === name ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <button type="button" aria-pressed={dark} onClick={() => setTheme(dark ? "light" : "dark")}>
          <span aria-hidden="true">{dark ? "☀ " : "☾ "}</span>
          {dark ? "Light" : "Dark"}
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {index ? <view.show index={index} /> : <Loading data={index} />}
      </main>
      <footer class="hint">
        {index ? `Written by embark ${index.version}, ${index.date} UTC. Scores are in points, of which 100 are perfect; intervals are at 95 %.` : ""}
      </footer>
    </>
  );
}

function stored(name: string): string {
  try {
    return localStorage.getItem(`embark-${name}`) ?? "";
  } catch {
    return "";
  }
}

const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
