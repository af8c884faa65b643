/** Strokes in a 16 by 16 box. */
const paths = {
  overview: 'M2.5 13.5V8m3.7 5.5V2.5m3.6 11V6m3.7 7.5V9.5',
  withdrawals: 'M8 2.5v7.5m0 0L4.8 6.8M8 10l3.2-3.2M2.5 11.5v2h11v-2',
  members:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-4 6c0-2.2 1.8-3.8 4-3.8s4 1.6 4 3.8M10.5 7.3a2.3 2.3 0 0 0 0-4.6M12 10.2c1.2.5 2 1.7 2 3.3',
  lists: 'M3 2.5h7l3 3v8H3zM9.5 2.5V6H13M5.5 9h5m-5 2.3h5',
  payRuns: 'M2 4.5h12v7H2zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6ZM4 6.5v3m8-3v3',
  cycles: 'M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 2v3m5-3v3',
  webhooks:
    'M5 11.5 8 6M8 3.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3Zm-4 7a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3Zm8 0a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3ZM5.5 12h5M8.8 6.3 11.3 10.8',
  requests: 'M2.5 3.5h11v9h-11zM5 6.5 7 8 5 9.5m3.5.2H11',
  events: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3l2 1.5',
  keys: 'M10 6.5a3 3 0 1 0-2.7 3L8.5 8.3h1.7V7l.6-.6M6 7.5 2.5 11v2.5H5v-1.3h1.3v-1.4',
  payouts: 'M2.5 6.5 8 3l5.5 3.5M3.5 6.5v6m3-6v6m3-6v6m3-6v6M2 13.5h12',
  partners: 'M3 13.5v-11h6v11M9 6.5h4v7M1.5 13.5h13M5 5h2M5 7.5h2M5 10h2',
  health: 'M2 8.5h2.7L6.2 4l3.3 8 1.6-3.5H14',
  audit: 'M8 2 3 4v4c0 3 2.2 5.2 5 6 2.8-.8 5-3 5-6V4zM5.8 8l1.6 1.6 3-3.2',
  exceptions: 'M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1',
  users: 'M8 8a2.8 2.8 0 1 0 0-5.5A2.8 2.8 0 0 0 8 8Zm-5 5.5c.3-2.3 2.4-3.8 5-3.8s4.7 1.5 5 3.8',
  settings: 'M2.5 5h6m3 0h2m-11 6h2m3 0h6M10 3.5v3m-4 3v3',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.2 3.2',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  close: 'm4 4 8 8m0-8-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11m-11 3.5h11',
  back: 'M9.5 4.5 6 8l3.5 3.5',
  forward: 'M6.5 4.5 10 8l-3.5 3.5',
  download: 'M8 2.5V10m0 0L5 7m3 3 3-3M3 13.5h10',
  sandbox: 'M6 2.5h4M7 2.5v4l-3.6 6.2a.6.6 0 0 0 .5.8h8.2a.6.6 0 0 0 .5-.8L9 6.5v-4M5.3 10h5.4',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1.2m0 10.6v1.2M1.5 8h1.2m10.6 0h1.2M3.4 3.4l.9.9m7.4 7.4.9.9m0-9.2-.9.9M4.3 11.7l-.9.9',
  help: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM6.4 6.4a1.7 1.7 0 1 1 2.4 1.7c-.5.3-.8.6-.8 1.2M8 11.2v.1',
  plus: 'M8 3v10M3 8h10',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
