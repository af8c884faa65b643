import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'

/** Goes on to another page after a change, unless the reader has left this one before the answer arrived. */
export function useGoOn(): (href: string) => void {
  const { route } = useLocation()
  const isHere = useRef(true)
  useEffect(
    () => () => {
      isHere.current = false
    },
    [],
  )
  return href => {
    if (isHere.current) route(href)
  }
}
