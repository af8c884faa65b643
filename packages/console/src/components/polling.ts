import { useEffect, useRef } from 'preact/hooks'

const pollMs = 1_000

/** Reloads every second while `isOn`. Waits for each response: otherwise every slow response would be discarded by the next request. */
export function usePolling(isOn: boolean, loaded: { value?: unknown; reload: () => void }): void {
  const latest = useRef(loaded)
  latest.current = loaded
  useEffect(() => {
    if (!isOn) return
    let seen: unknown
    const timer = setInterval(() => {
      const { value, reload } = latest.current
      if (value === seen) return
      seen = value
      reload()
    }, pollMs)
    return () => clearInterval(timer)
  }, [isOn])
}
