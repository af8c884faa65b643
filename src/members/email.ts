/** An e-mail address as it is compared: two that differ only in case are the same. */
export function foldEmail(email: string): string {
  return email.toLowerCase()
}
