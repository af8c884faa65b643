import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'

/** Navigates to another page after a change, unless the reader has already left this page. */
export function useNavigateIfHere(): (href: string) => void {
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
