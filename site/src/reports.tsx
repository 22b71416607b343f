// Reports that are kept with the results: examinations, verifications, sweeps, diagnoses; each is loaded when it is opened.
import { useState } from "preact/hooks";
import type { Report, ReportEntry, ReportSection } from "./data";
import { useData } from "./data";
import { plain } from "./format";
import { Loading, Notes } from "./parts";
import { whole } from "./url";

const NUMBERS = /^[\d.,<±+−–[\]\s%-]*$/; // what is written to the right of its column
const KINDS: Record<string, string> = { doctor: "doctor", verify: "verify", omni: "OmniSET", ark: "ARK" };

export function Reports({ reports, open = false }: { reports: ReportEntry[]; open?: boolean }) {
  return (
    <>
      {reports.map((report) => (
        <ReportView key={report.file} entry={report} open={open} />
      ))}
    </>
  );
}

function ReportView({ entry, open }: { entry: ReportEntry; open: boolean }) {
  const [opened, setOpened] = useState(open);
  return (
    <details class="report" open={opened} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>
        <span class="tag">{plain(KINDS[entry.kind] ?? entry.kind)}</span> {plain(entry.title)}{" "}
        {entry.verdict && <b class={verdictClass(entry.verdict)}>{plain(entry.verdict)}</b>}{" "}
        <small>
          {entry.date} UTC{entry.revision ? `, revision ${plain(entry.revision)}` : ""}
        </small>
      </summary>
      {opened && <Body file={entry.file} />}
    </details>
  );
}

const verdictClass = (verdict: string): string =>
  verdict === "reproduced" || verdict === "no faults" ? "win" : verdict === "differs" || verdict === "faults" ? "loss" : "tie";

function Body({ file }: { file: string }) {
  const report = useData<Report>(`reports/${file}`);
  if (!report) return <Loading data={report} />;
  return (
    <>
      {report.sentences.map((sentence, number) => (
        <p key={number}>{plain(sentence)}</p>
      ))}
      {report.sections.map((section, number) => (
        <Section key={number} section={section} name={section.title || report.title} />
      ))}
    </>
  );
}

function Section({ section, name }: { section: ReportSection; name: string }) {
  const rows = section.rows.map((row, number) => ({ row, heading: row[0] !== (section.rows[number - 1]?.[0] ?? "") ? row[0] : "" }));
  return (
    <section>
      {section.title && <h4>{plain(section.title)}</h4>}
      {section.figure && (
        <figure>
          {/* As a picture, whatever an SVG holds is inert: no script runs, and nothing is loaded. */}
          <img class="figure" loading="lazy" src={`data:image/svg+xml,${encodeURIComponent(whole(section.figure))}`} alt={plain(section.caption || name)} />
        </figure>
      )}
      <div class="scroll low" tabIndex={0} role="region" aria-label={plain(name)}>
        <table>
          <thead>
            <tr>{section.columns.map((column, number) => <th scope="col" key={number} class={section.rows.every(([, , cells]) => NUMBERS.test(cells[number] ?? "")) ? "" : "words"}>{plain(column) || <span class="unseen">verdict</span>}</th>)}</tr>
          </thead>
          <tbody>
            {rows.map(({ row: [, total, cells], heading }, number) => (
              <>
                {heading && <tr key={`${number}h`}><th scope="rowgroup" colSpan={section.columns.length}>{plain(heading)}</th></tr>}
                <tr key={number} class={total ? "total" : ""}>
                  {cells.map((cell, column) => <td key={column} class={NUMBERS.test(cell) ? "" : "words"}>{plain(cell)}</td>)}
                </tr>
              </>
            ))}
          </tbody>
        </table>
      </div>
      <Notes notes={section.notes} />
    </section>
  );
}
