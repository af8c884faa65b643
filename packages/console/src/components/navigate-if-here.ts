import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'

/** Navigates to another page once a change is answered, unless the reader has left this page meanwhile. */
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
