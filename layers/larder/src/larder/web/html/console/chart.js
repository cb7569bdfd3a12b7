// Figures of each day as stacked bars, and the same figures as a table.

const SERIES = [
  ["localHits", "Local hit", "local"],
  ["remoteHits", "Remote hit", "remote"],
  ["remoteMisses", "Built", "built"],
];

const tasksOf = (figures) => figures.localHits + figures.remoteHits + figures.remoteMisses;

/** The share of tasks that came from a cache, as docs/usage.md defines it. Null without tasks. */
const hitRate = ({ hits, remoteMisses }) => (hits + remoteMisses === 0 ? null : hits / (hits + remoteMisses));

/** The same for a task of reported runs, which has its number of runs. */
const hitShare = ({ localHits, remoteHits, runs }) => (runs === 0 ? null : (localHits + remoteHits) / runs);

const rateText = (rate) => (rate === null ? "–" : formats.percent.format(rate));

const Legend = ({ series = SERIES }) => html`<ul class="legend">
  ${series.map(([, name, kind]) => html`<li><i class=${kind}></i>${name}</li>`)}
</ul>`;

/** A day of UTC, or an hour in the zone of the user. */
const dayText = ({ day, hour }) => (hour ? formats.hour.format(hour) : formats.usageDay.format(new Date(day)));

function TasksTable({ days }) {
  const figure = (name) => (day) => formats.number.format(day[name]);
  return html`<${Table} label="Tasks" rows=${[...days].reverse()} id=${({ day, hour }) => day ?? hour} columns=${[
    { title: days[0].hour ? "Hour" : "Day", cell: dayText },
    ...SERIES.map(([name, title]) => ({ title: `${title}s`.replace("Builts", "Built"), number: true, cell: figure(name) })),
    { title: "From a cache", number: true, cell: (day) => rateText(hitRate(day)) },
    { title: "Time saved", number: true, cell: (day) => durationText(day.timeSavedMs) },
  ]} />`;
}

/** The smallest round number that is not below `most`, and whose half is whole. */
function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(2, most)));
  return [2, 4, 6, 10, 20].map((times) => times * power).find((limit) => limit >= most);
}

/** Bars of several `series`, `[property, title, class]`, one above the other, or with `most`, the end of the axis, lines,
 * which days without a value interrupt. `readout` describes a day, `marks` has texts of days, and `open` shows a day. */
function DaysChart({ days, series, label, axisText, readout, most, left = 48, marks, open }) {
  const sumOf = (day) => series.reduce((sum, [name]) => sum + (day[name] ?? 0), 0);
  const box = useRef(null);
  // The width in pixels. A scaled drawing would scale its text, too.
  const [width, setWidth] = useState(0);
  const [chosen, setChosen] = useState(days.length - 1);
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(Math.floor(contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const [height, bottom] = [220, 24];
  const limit = most ?? roundUp(Math.max(...days.map(sumOf)));
  // Few days are no wide bars.
  const step = Math.min(most ? width : 96, (width - left) / days.length);
  const gap = Math.min(3, step / 5);
  const y = (sum) => (height - bottom) * (1 - sum / limit) + 8;
  const labelEvery = Math.ceil(days.length / Math.max(2, Math.floor(width / 110)));
  const shown = Math.min(chosen, days.length - 1);
  const day = days[shown];
  const move = (event) => {
    if (event.key === "Enter") open?.(day);
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: days.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setChosen(Math.max(0, Math.min(days.length - 1, to)));
  };
  const bar = (one, index) => {
    const x = left + index * step;
    let below = 0;
    return html`<g onMouseEnter=${() => setChosen(index)} onClick=${() => open?.(one)}>
      ${most === undefined && series.map(([name, , kind]) => {
        const from = y(below);
        below += one[name] ?? 0;
        const drawn = from - y(below) - (one[name] ? 1 : 0);
        return html`<rect class=${kind} x=${x + gap / 2} width=${Math.max(0.5, step - gap)} y=${y(below)} height=${Math.max(0, drawn)} />`;
      })}
      <rect class=${index === shown ? "at chosen" : "at"} x=${x} y="0" width=${Math.max(0, step)} height=${height - bottom + 8} />
      ${index % labelEvery === 0 && html`<text x=${x} y=${height + 2}>${dayText(one)}</text>`}
    </g>`;
  };
  return html`<p class="readout" aria-live="polite">
      ${dayText(day)}: ${readout(day)}${marks?.has(day.day) && html`. <strong>${visible(marks.get(day.day))}</strong> began`}
    </p>
    <div ref=${box} class="chart">
      ${width > 0 && html`<svg width=${width} height=${height + 8} role="group" tabindex="0" class=${open ? "opens" : ""} onKeyDown=${move}
        aria-label=${`${label}. The left and right arrow keys choose a day${open ? ", and Enter shows its runs" : ""}.`}>
        ${[0, limit / 2, limit].map((sum) => html`
          <line x1=${left} x2=${width} y1=${y(sum)} y2=${y(sum)} />
          <text x=${left - 8} y=${y(sum) + 4} text-anchor="end">${axisText(sum)}</text>`)}
        ${days.map(({ day }, index) => marks?.has(day) && html`<line class="mark" x1=${left + (index + 0.5) * step} x2=${left + (index + 0.5) * step} y1="0" y2=${y(0)} />`)}
        ${most !== undefined && series.map((one) => html`<${Line} days=${days} series=${one} x=${(index) => left + (index + 0.5) * step} y=${y} />`)}
        ${days.map(bar)}
      </svg>`}
    </div>`;
}

/** The days of a series as a line with a dot for each. */
function Line({ days, series: [name, , kind], x, y }) {
  const at = (index) => `${x(index)} ${y(days[index][name])}`;
  const isKnown = (index) => (days[index]?.[name] ?? null) !== null;
  const known = [...days.keys()].filter(isKnown);
  const path = known.map((index) => `${isKnown(index - 1) ? "L" : "M"}${at(index)}`).join("");
  return html`<path d=${path} class=${`line ${kind}`} />${known.map((index) => html`<circle class=${kind} cx=${x(index)} cy=${y(days[index][name])} r="3" />`)}`;
}

const RATE = [["rate", "From a cache", "remote"]];

/** The share of tasks from a cache on each day. */
const RateChart = ({ days }) => html`<${DaysChart} most=${100} days=${days.map((day) => ({ ...day, rate: hitRate(day) === null ? null : hitRate(day) * 100 }))} series=${RATE}
  label="Share of tasks from a cache per day" axisText=${(percent) => formats.percent.format(percent / 100)} readout=${taskText} />`;

const taskText = (day) =>
  `${countText(tasksOf(day), "task", "tasks")}, ${rateText(hitRate(day))} from a cache, ${durationText(day.timeSavedMs)} saved`;

const TasksChart = ({ days }) => html`<${Legend} />
  <${DaysChart} days=${days} series=${SERIES} label=${days[0].hour ? "Tasks per hour" : "Tasks per day"} axisText=${(tasks) => formats.tenths.format(tasks)} readout=${taskText} />`;

const TASK_CHARTS = [
  ["Share", RateChart],
  ["Number", TasksChart],
];

/** The reported runs of a day as hours, from the first one to the last. */
function hoursOf(runs) {
  const hours = new Map();
  for (const run of [...runs].reverse()) {
    const hour = Math.floor(run.startedAt / HOUR) * HOUR;
    const sums = hours.get(hour) ?? { hour, localHits: 0, remoteHits: 0, remoteMisses: 0, hits: 0, timeSavedMs: 0 };
    sums.localHits += run.localHits;
    sums.remoteHits += run.remoteHits;
    sums.hits += run.localHits + run.remoteHits;
    if (run.usedCache) sums.remoteMisses += run.built;
    sums.timeSavedMs += run.timeSavedMs;
    hours.set(hour, sums);
  }
  const [first, last] = [Math.min(...hours.keys()), Math.max(...hours.keys())];
  const none = { localHits: 0, remoteHits: 0, remoteMisses: 0, hits: 0, timeSavedMs: 0 };
  return Array.from({ length: (last - first) / HOUR + 1 }, (_, index) => hours.get(first + index * HOUR) ?? { hour: first + index * HOUR, ...none });
}

/** The days from the first one with tasks on. */
function usedDays(days) {
  const first = days.findIndex((day) => tasksOf(day) > 0);
  return first < 0 ? days.slice(-1) : days.slice(first);
}

/** A card with figures of each day, as one of the `charts`, `[name, chart]`, or as a table. Both get the `rest`. */
function DaysCard({ title, days, charts, table: Rows, children, ...rest }) {
  const [isTable, setTable] = useState(false);
  const [chosen, setChosen] = useState(charts[0][0]);
  const Chart = charts.find(([name]) => name === chosen)[1];
  const toggle = html`${charts.length > 1 && !isTable && html`<${Field} label="Show" value=${chosen} onChange=${({ target }) => setChosen(target.value)}>
    ${charts.map(([name]) => html`<option value=${name}>${name}</option>`)}
  <//>`}<${Button} kind="second small" aria-pressed=${isTable} aria-label=${`Show as table: ${title}`} onClick=${() => setTable(!isTable)}>Show as table<//>`;
  return html`<${Card} title=${title} actions=${toggle}><${isTable ? Rows : Chart} days=${days} ...${rest} />${children}<//>`;
}
