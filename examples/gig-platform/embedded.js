// Runs before the component's script, so that no question for a token is missed. It asks at the start, and before a session ends.
document.querySelector('midmonth-withdraw').addEventListener('midmonth-token-needed', async event => {
  event.preventDefault()
  const response = await fetch('/member-sessions', { method: 'POST' })
  event.target.token = (await response.json()).token
})
