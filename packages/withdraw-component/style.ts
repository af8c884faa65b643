// The theme is set by custom properties of the element: `--midmonth-accent`, `--midmonth-on-accent`, `--midmonth-background`,
// `--midmonth-text`, `--midmonth-muted`, `--midmonth-border`, `--midmonth-danger`, `--midmonth-success`, `--midmonth-radius`
// and `--midmonth-font`. Light and dark follow the page's `color-scheme`.
export const style = `
:host {
  display: block;
  --accent: var(--midmonth-accent, light-dark(#0b5c4a, #5fd3b3));
  --on-accent: var(--midmonth-on-accent, light-dark(#fff, #04211a));
  --background: var(--midmonth-background, light-dark(#fff, #16191d));
  --text: var(--midmonth-text, light-dark(#15191e, #eef1f4));
  --muted: var(--midmonth-muted, light-dark(#57606a, #a3adb8));
  --border: var(--midmonth-border, light-dark(#d5dae0, #353c45));
  --danger: var(--midmonth-danger, light-dark(#a3211b, #ff9d94));
  --success: var(--midmonth-success, light-dark(#0b5c4a, #5fd3b3));
  --radius: var(--midmonth-radius, 14px);
  --tint: color-mix(in srgb, var(--accent) 9%, var(--background));
  font: 400 1rem/1.5 var(--midmonth-font, system-ui, sans-serif);
  color: var(--text);
}
:host([hidden]) { display: none }
* { box-sizing: border-box; margin: 0 }
section {
  background: var(--background);
  border: 1px solid var(--border);
  border-radius: var(--radius);
  padding: clamp(1.125rem, 5vw, 1.75rem);
  min-height: 21rem;
  display: flex;
  flex-direction: column;
  gap: 1.125rem;
}
h2 { font-size: 1rem; font-weight: 600; line-height: 1.4 }
h2:focus { outline: none }
.label { color: var(--muted); font-size: .9375rem; font-weight: 400 }
.amount { font-size: clamp(2.25rem, 11vw, 2.875rem); font-weight: 600; line-height: 1.15; letter-spacing: -.02em; font-variant-numeric: tabular-nums }
.hint { color: var(--muted); font-size: .875rem }
form { display: flex; flex-direction: column; gap: .875rem; flex: 1 }
label { font-weight: 500; font-size: .9375rem; display: block; margin-bottom: .375rem }
.field { display: flex; align-items: center; gap: .375rem; border: 1px solid var(--muted); border-radius: calc(var(--radius) * .7); padding: 0 .875rem; min-height: 3.25rem }
.field:focus-within { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent), 0 0 0 3px color-mix(in srgb, var(--accent) 25%, transparent) }
.field[data-invalid] { border-color: var(--danger); box-shadow: inset 0 0 0 1px var(--danger) }
.field span { color: var(--muted); font-size: 1.25rem }
input { flex: 1; min-width: 0; border: 0; outline: 0; background: none; color: inherit; font: inherit; font-size: 1.25rem; font-variant-numeric: tabular-nums; height: 3.125rem; padding: 0 }
.choices { display: flex; flex-wrap: wrap; gap: .5rem; border: 0; padding: 0 }
button { font: inherit; font-weight: 600; cursor: pointer; border-radius: calc(var(--radius) * .7); min-height: 3rem; padding: .625rem 1.125rem; border: 1px solid transparent }
button:focus-visible { outline: 3px solid color-mix(in srgb, var(--accent) 55%, transparent); outline-offset: 2px }
.choices button { min-height: 2.75rem; padding: .25rem .875rem; font-weight: 500; font-size: .9375rem; background: none; color: var(--text); border-color: var(--border); border-radius: 99px; font-variant-numeric: tabular-nums }
.choices button:hover { border-color: var(--accent) }
.choices button[aria-pressed=true] { background: var(--tint); border-color: var(--accent); color: var(--accent) }
.primary { background: var(--accent); color: var(--on-accent); width: 100% }
.primary:hover { filter: brightness(1.08) }
.primary[aria-disabled=true] { opacity: .65; cursor: progress }
.plain { background: none; color: var(--accent); width: 100% }
.plain:hover { background: var(--tint) }
.actions { margin-top: auto; display: flex; flex-direction: column; gap: .375rem }
.error { color: var(--danger); font-size: .9375rem; font-weight: 500 }
.error:empty { display: none }
dl { display: grid; grid-template-columns: auto 1fr; align-items: baseline; gap: .75rem 1rem; font-variant-numeric: tabular-nums }
dt { color: var(--muted) }
dd { text-align: end }
dl .total { align-self: stretch; line-height: 1.75rem; font-weight: 600; color: var(--text); border-top: 1px solid var(--border); padding-top: .75rem; margin-inline-end: -1rem }
dl dd.total { margin: 0; font-size: 1.125rem }
ol { list-style: none; padding: 0; display: flex; flex-direction: column }
li { position: relative; padding: 0 0 1.25rem 1.875rem }
li::before { content: ''; position: absolute; left: .125rem; top: .375rem; width: .8125rem; height: .8125rem; border-radius: 50%; border: 2px solid var(--border); background: var(--background) }
li:not(:last-child)::after { content: ''; position: absolute; left: .5rem; top: 1.375rem; bottom: -.25rem; width: 1px; background: var(--border) }
li.past::before { background: var(--success); border-color: var(--success) }
li.bad::before { background: var(--danger); border-color: var(--danger) }
li.next { color: var(--muted) }
time { display: block; color: var(--muted); font-size: .875rem; font-variant-numeric: tabular-nums }
.status { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.skeleton { height: 2.875rem; width: 11rem; max-width: 70%; border-radius: .5rem; background: var(--border); opacity: .6 }
@media (prefers-reduced-motion: no-preference) {
  .skeleton { animation: pulse 1.4s ease-in-out infinite }
  @keyframes pulse { 50% { opacity: .25 } }
}
@media (forced-colors: active) { li.past::before { background: CanvasText } }
`
