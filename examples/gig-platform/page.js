// Amounts come in minor units. The number of decimals is the currency's, and the locale is the reader's.
const show = ({ amount, currency }) => {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency })
  return format.format(`${amount}E-${format.resolvedOptions().maximumFractionDigits}`)
}
const element = name => document.getElementById(name)
let quoteId
let refreshes = 0

async function call(path, body) {
  const response = await fetch(
    path,
    body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  )
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}

/** Runs an action of a button, which cannot be pressed twice, and shows what went wrong. */
async function act(button, action) {
  element('problem').textContent = ''
  button.disabled = true
  try {
    await action()
  } catch (error) {
    element('problem').textContent = error.message
  } finally {
    button.disabled = false
  }
}

async function refresh() {
  const sequence = ++refreshes
  const { name, balance, withdrawals } = await call('/pay')
  // A later call has the newer state.
  if (sequence !== refreshes) return
  element('greeting').textContent = `Hello ${name}`
  element('available').textContent = show(balance.available)
  element('limits').textContent = balance.isTemporarilyUnavailable
    ? 'Withdrawals are paused for now.'
    : `From ${show(balance.lowerLimit)} to ${show(balance.upperLimit)} at a time`
  element('withdrawals').replaceChildren(
    ...withdrawals.map(({ amount, status, reason }) => {
      const item = document.createElement('li')
      item.textContent = [show(amount), status, reason].filter(Boolean).join(' · ')
      return item
    }),
  )
}

element('ask').addEventListener('submit', event => {
  event.preventDefault()
  act(event.submitter, async () => {
    element('quote').hidden = true
    const quote = await call('/quotes', { amount: element('amount').value })
    quoteId = quote.withdrawalIntentId
    element('gross').textContent = show(quote.amount)
    element('fee').textContent = show(quote.fee)
    element('net').textContent = show(quote.netAmount)
    element('account').textContent =
      `••••${(quote.accountDetails.accountNumber ?? quote.accountDetails.iban).slice(-4)}`
    element('quote').hidden = false
    element('confirm').focus()
  })
})

element('confirm').addEventListener('click', event => {
  act(event.currentTarget, async () => {
    await call('/withdrawals', { quoteId })
    element('quote').hidden = true
    element('ask').reset()
    await refresh()
  })
})

const changes = new EventSource('/changes')
// The connection is new, or a webhook arrived.
for (const kind of ['open', 'message']) changes.addEventListener(kind, () => refresh())
