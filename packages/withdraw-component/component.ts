import type {
  MemberBalance,
  MemberPage,
  OwnWithdrawal,
  OwnWithdrawalIntent,
  WithdrawalStatus,
} from '../sdk/src/generated/schemas.ts'
import { Api, Refusal } from './api.ts'
import { choices, format, formatForInput, fromWire, type Money, parse, symbolOf } from './money.ts'
import { style } from './style.ts'
import { fill, type Texts, textsFor } from './texts.ts'

const limits = {
  // A withdrawal is submitted within seconds and paid within hours, so an open page polls less and less often.
  firstPollMs: 3_000,
  pollMsMax: 60_000,
  pollGrowth: 1.4,
  // Renews a token this long before it expires, so that no request fails.
  renewBeforeMs: 20_000,
  // Prevents a loop if the page provides short-lived tokens.
  renewalMsMin: 5_000,
}

const finalStatuses: readonly WithdrawalStatus[] = ['paid', 'failed', 'returned', 'cancelled']

const scriptUrl = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : ''

/**
 * `<midmonth-withdraw token="…" base-url="https://pay.example">`: shows what a member can withdraw, quotes a withdrawal,
 * completes it and follows it.
 *
 * Events, all bubbling: `midmonth-token-needed` when the token is missing or about to expire; call `preventDefault()` and set
 * `token` to carry on. `midmonth-completed` with the withdrawal in `detail`.
 */
class MidmonthWithdraw extends HTMLElement {
  static readonly observedAttributes = ['token', 'base-url', 'lang']

  readonly #root = this.attachShadow({ mode: 'open' })
  readonly #view = h('section', {})
  readonly #status = h('p', { class: 'status', role: 'status' })
  #token = ''
  #api: Api | undefined
  #session: MemberPage | undefined
  #balance: MemberBalance | undefined
  /** The action to repeat once there is a new token. */
  #pending: (() => Promise<void>) | undefined
  #renewal: ReturnType<typeof setTimeout> | undefined
  #poll: ReturnType<typeof setTimeout> | undefined
  /** Increases with every view, so that a late response does not replace a newer view. */
  #turn = 0

  constructor() {
    super()
    // Not a style element, which a strict content security policy blocks.
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(style)
    this.#root.adoptedStyleSheets = [sheet]
    this.#root.append(this.#view, this.#status)
  }

  /** The token of a member session. If set as a property, it never appears in the document. */
  get token(): string {
    return this.#token
  }
  set token(token: string) {
    this.#token = token
    if (this.isConnected) this.#begin()
  }

  connectedCallback(): void {
    this.#token ||= this.getAttribute('token') ?? ''
    if (this.#token !== '') {
      this.#begin()
      return
    }
    this.#showLoading()
    // A script below the element may add the listener.
    const begin = () => setTimeout(() => this.isConnected && this.#token === '' && this.#begin())
    if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', begin, { once: true })
    else begin()
  }

  disconnectedCallback(): void {
    this.#turn += 1
    clearTimeout(this.#poll)
    clearTimeout(this.#renewal)
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (!this.isConnected || before === after) return
    if (name === 'token') this.token = after ?? ''
    else this.#begin()
  }

  get #locale(): string {
    const lang = this.closest('[lang]')?.getAttribute('lang') || navigator.language
    return Intl.NumberFormat.supportedLocalesOf(lang).length > 0 ? lang : 'en'
  }
  get #texts(): Texts {
    return textsFor(this.#locale)
  }

  #begin(): void {
    clearTimeout(this.#renewal)
    if (this.#token === '') {
      this.#needToken()
      return
    }
    this.#api = new Api((this.getAttribute('base-url') ?? originOf(scriptUrl)).replace(/\/$/, ''), this.#token)
    const pending = this.#pending ?? (() => this.#open())
    this.#pending = undefined
    void pending()
  }

  /** Asks the page for a token. */
  #needToken(): void {
    const event = new CustomEvent('midmonth-token-needed', { bubbles: true, composed: true, cancelable: true })
    const isComing = !this.dispatchEvent(event)
    if (isComing || this.#token !== '') return
    const { ended, endedHow } = this.#texts
    this.#show(ended, [h('p', { class: 'hint' }, endedHow)])
  }

  /**
   * Calls the server on behalf of a view. If the session has ended, requests a token and repeats the call.
   * @returns undefined if the view is gone or the call will be repeated later
   */
  async #ask<T>(call: (api: Api) => Promise<T>, again: () => Promise<void>): Promise<T | Refusal | undefined> {
    const turn = this.#turn
    const answer = await call(this.#api as Api).catch(error =>
      error instanceof Refusal ? error : new Refusal({ code: 'other' }),
    )
    if (turn !== this.#turn) return undefined
    if (!(answer instanceof Refusal) || answer.code !== 'Unauthorized') return answer
    this.#pending = again
    this.#token = ''
    this.#needToken()
    return undefined
  }

  #showLoading(): void {
    const { available, loading } = this.#texts
    this.#show(available, [h('div', { class: 'skeleton' })], { isQuiet: true })
    this.#say(loading)
  }

  async #open(): Promise<void> {
    if (this.#balance === undefined) this.#showLoading()
    const answers = await this.#ask(
      api => Promise.all([api.session(), api.balance()]),
      () => this.#open(),
    )
    if (answers === undefined) return
    if (answers instanceof Refusal) return this.#showFailure(answers)
    ;[this.#session, this.#balance] = answers
    this.#renewInTime(this.#session)
    const detail = { employer: this.#session.employer }
    this.dispatchEvent(new CustomEvent('midmonth-session', { bubbles: true, composed: true, detail }))
    this.#showForm()
  }

  #renewInTime({ expiresInSeconds }: MemberPage): void {
    clearTimeout(this.#renewal)
    const leftMs = expiresInSeconds * 1_000 - limits.renewBeforeMs
    this.#renewal = setTimeout(
      () => {
        // Replaces only the token and keeps the view.
        this.#pending = async () => {
          const session = await this.#ask(
            api => api.session(),
            async () => undefined,
          )
          if (session !== undefined && !(session instanceof Refusal)) this.#renewInTime(session)
        }
        this.dispatchEvent(
          new CustomEvent('midmonth-token-needed', { bubbles: true, composed: true, cancelable: true }),
        )
      },
      Math.max(leftMs, limits.renewalMsMin),
    )
  }

  #showFailure(refusal: Refusal): void {
    const { available, retry, paused } = this.#texts
    const isPaused = refusal.code === 'UnprocessableEntity'
    this.#balance = undefined
    this.#show(available, [
      h('p', { class: 'error', role: 'alert' }, isPaused ? paused : this.#wordsOf(refusal)),
      h(
        'div',
        { class: 'actions' },
        button('primary', retry, () => this.#open()),
      ),
    ])
  }

  #showForm({ typed = '', refusal }: { typed?: string; refusal?: string } = {}): void {
    if (this.#balance === undefined || this.#session === undefined) return
    const texts = this.#texts
    const locale = this.#locale
    const available = fromWire(this.#balance.available)
    const { currency } = available
    const [lower, upper] = [fromWire(this.#balance.lowerLimit), fromWire(this.#balance.upperLimit)]
    const suggested = choices(available, { lower: lower.amount, upper: upper.amount })
    const shown = [h('p', { class: 'amount' }, format(available, locale))]
    const reason = this.#whyNot(suggested.length > 0)
    if (reason !== undefined) {
      this.#show(texts.available, [...shown, h('p', { class: 'hint' }, reason)], { labelled: true })
      return
    }

    const { symbol, isFirst } = symbolOf(currency, locale)
    const mark = h('span', { 'aria-hidden': 'true' }, symbol)
    const input = h('input', {
      ...{ id: 'amount', inputmode: 'decimal', autocomplete: 'off', enterkeyhint: 'next' },
      ...{ 'aria-describedby': 'error hint', 'aria-label': `${texts.amount} (${currency})` },
    })
    input.value = typed
    const field = h('div', { class: 'field' }, ...(isFirst ? [mark, input] : [input, mark]))
    const error = h('p', { class: 'error', id: 'error', role: 'alert' })
    const complain = (words: string) => {
      error.textContent = words
      field.toggleAttribute('data-invalid', words !== '')
      input.setAttribute('aria-invalid', String(words !== ''))
    }
    const chips = suggested.map((amount, index) => {
      // All suggestions fit on one line of a phone.
      const written = format({ amount, currency }, locale, 'stripIfInteger')
      const isAll = index === suggested.length - 1 && amount === available.amount
      const chip = button('', isAll ? fill(texts.all, { amount: written }) : written, () => {
        input.value = formatForInput({ amount, currency }, locale)
        complain('')
        mirror()
      })
      return { chip, amount }
    })
    const mirror = () => {
      const given = parse(input.value, { currency, locale })
      for (const { chip, amount } of chips) chip.setAttribute('aria-pressed', String(amount === given))
    }
    input.addEventListener('input', () => {
      complain('')
      mirror()
    })
    const next = submitButton(texts.next)
    const form = h(
      'form',
      { novalidate: '' },
      h('div', {}, h('label', { for: 'amount' }, texts.amount), field),
      h('div', { class: 'choices', role: 'group', 'aria-label': texts.choices }, ...chips.map(({ chip }) => chip)),
      error,
      h(
        'p',
        { class: 'hint', id: 'hint' },
        fill(texts.from, { lower: format(lower, locale), upper: format(upper, locale) }),
      ),
      h('div', { class: 'actions' }, next),
    )
    form.addEventListener('submit', async event => {
      event.preventDefault()
      if (isBusy(next)) return
      const amount = parse(input.value, { currency, locale })
      if (amount === null) {
        complain(
          fill(texts.badAmount, {
            example: formatForInput({ amount: suggested[0] ?? lower.amount, currency }, locale),
          }),
        )
        input.focus()
        return
      }
      setBusy(next, true)
      this.#say(texts.loading)
      const submit = () => this.#quote({ amount, currency }, input.value)
      await submit()
      setBusy(next, false)
    })
    mirror()
    this.#show(texts.available, [...shown, form], { labelled: true })
    if (refusal !== undefined) {
      complain(refusal)
      input.focus()
    }
  }

  /** Returns why there is no form; undefined if there is one. */
  #whyNot(hasEnough: boolean): string | undefined {
    const { readOnly, paused, noAccount, nothing, MemberNotEligible } = this.#texts
    if (this.#session?.scope === 'read') return readOnly
    if (this.#session?.status !== 'active') return MemberNotEligible
    if (this.#balance?.isTemporarilyUnavailable) return paused
    if (this.#session.bankAccount === null) return noAccount
    return hasEnough ? undefined : nothing
  }

  async #quote(money: Money, typed: string): Promise<void> {
    const quote = await this.#ask(
      api => api.quote({ amount: Number(money.amount), currency: money.currency }),
      () => this.#quote(money, typed),
    )
    if (quote === undefined) return
    if (quote instanceof Refusal) return this.#showForm({ typed, refusal: this.#wordsOf(quote) })
    this.#showQuote(quote, typed)
  }

  #showQuote(quote: OwnWithdrawalIntent, typed: string): void {
    const texts = this.#texts
    const write = (money: { amount: number; currency: string }) => format(fromWire(money), this.#locale)
    const error = h('p', { class: 'error', role: 'alert' })
    const confirm = button('primary', fill(texts.confirm, { amount: write(quote.amount) }), async () => {
      if (isBusy(confirm)) return
      setBusy(confirm, true)
      error.textContent = ''
      this.#say(texts.loading)
      await this.#complete(quote, words => {
        error.textContent = words
      })
      setBusy(confirm, false)
    })
    const rows: [string, string, string?][] = [
      [texts.leaves, write(quote.amount)],
      [texts.fee, quote.fee.amount === 0 ? texts.noFee : write(quote.fee)],
      [texts.receive, write(quote.netAmount), 'total'],
      [texts.account, fill(texts.ending, { digits: quote.bankAccount.lastFour })],
      [texts.arrives, quote.expectedAt === null ? texts.arrivesLater : this.#time(quote.expectedAt)],
    ]
    const list = h(
      'dl',
      {},
      ...rows.flatMap(([name, value, kind = '']) => [h('dt', { class: kind }, name), h('dd', { class: kind }, value)]),
    )
    const back = button('plain', texts.back, () => this.#showForm({ typed }))
    this.#show(texts.check, [list, error, h('div', { class: 'actions' }, confirm, back)])
  }

  async #complete(quote: OwnWithdrawalIntent, complain: (words: string) => void): Promise<void> {
    const withdrawal = await this.#ask(
      api => api.complete(quote.withdrawalIntentId),
      () => this.#complete(quote, complain),
    )
    if (withdrawal === undefined) return
    if (withdrawal instanceof Refusal) {
      // Without a response, the money may have moved. Completing the same quote again cannot move the money twice.
      const isUnsure = withdrawal.code === 'Offline' || withdrawal.code === 'InternalServerError'
      return complain(isUnsure ? this.#texts.unsure : this.#wordsOf(withdrawal))
    }
    this.#balance = undefined
    this.dispatchEvent(new CustomEvent('midmonth-completed', { bubbles: true, composed: true, detail: { withdrawal } }))
    this.#showWithdrawal(withdrawal)
  }

  #showWithdrawal(withdrawal: OwnWithdrawal): void {
    const texts = this.#texts
    const steps = h('ol', {})
    const back = button('plain', texts.again, () => this.#open())
    const amount = format(fromWire(withdrawal.netAmount), this.#locale)
    const account = fill(texts.ending, { digits: withdrawal.bankAccount.lastFour })
    this.#show(fill(texts.done, { amount }), [
      h('p', { class: 'hint' }, `${texts.account} ${account}`),
      steps,
      h('div', { class: 'actions' }, back),
    ])
    this.#follow(withdrawal, steps, limits.firstPollMs)
  }

  #follow(withdrawal: OwnWithdrawal, steps: HTMLOListElement, waitMs: number): void {
    const texts = this.#texts
    const past = withdrawal.timeline.map(({ status, at }) => {
      const isBad = status !== 'paid' && finalStatuses.includes(status)
      return h('li', { class: isBad ? 'bad' : 'past' }, texts[status], h('time', { datetime: at }, this.#time(at)))
    })
    const isOver = finalStatuses.includes(withdrawal.status)
    const next = (['submitted', 'paid'] as const)
      .filter(status => !isOver && !withdrawal.timeline.some(moment => moment.status === status))
      .map(status => {
        const { expectedAt } = withdrawal
        const isExpected = status === 'paid' && expectedAt !== null
        const when = isExpected
          ? [h('time', { datetime: expectedAt }, `${texts.arrives} ${this.#time(expectedAt)}`)]
          : []
        return h('li', { class: 'next' }, texts[status], ...when)
      })
    steps.replaceChildren(...past, ...next)
    if (isOver) {
      // The money is no longer on its way, and may never have arrived.
      const heading = this.#view.querySelector('h2')
      const amount = format(fromWire(withdrawal.netAmount), this.#locale)
      if (heading !== null) heading.textContent = fill(texts.over, { amount })
      return
    }
    const turn = this.#turn
    this.#poll = setTimeout(async () => {
      const following = () => this.#followAgain(withdrawal, steps, waitMs)
      if (document.visibilityState === 'hidden') return following()
      const current = await this.#ask(
        api => api.withdrawal(withdrawal.id),
        async () => following(),
      )
      if (current === undefined || turn !== this.#turn) return
      if (current instanceof Refusal) return following()
      if (current.status !== withdrawal.status) this.#say(texts[current.status])
      this.#followAgain(current, steps, current.status === withdrawal.status ? waitMs : limits.firstPollMs)
    }, waitMs)
  }

  #followAgain(withdrawal: OwnWithdrawal, steps: HTMLOListElement, waitMs: number): void {
    this.#follow(withdrawal, steps, Math.min(waitMs * limits.pollGrowth, limits.pollMsMax))
  }

  #wordsOf({ code, issue }: Refusal): string {
    const texts = this.#texts
    if (code === 'UnprocessableEntity') return texts.paused
    const limit = issue.lowerLimit ?? issue.upperLimit
    const words = code in texts ? texts[code as keyof Texts] : texts.other
    return fill(words, limit === undefined ? {} : { limit: format(fromWire(limit), this.#locale) })
  }

  #time(at: string): string {
    return new Intl.DateTimeFormat(this.#locale, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at))
  }

  /** Announces a text to screen readers. */
  #say(words: string): void {
    this.#status.textContent = words
  }

  /**
   * Replaces the view. If the focus is within the element, the heading gets the focus, so that keyboard users keep their place and
   * screen readers read the new view.
   * @param isQuiet while loading: keeps the focus
   * @param labelled whether the heading is only the label of the amount below it
   */
  #show(title: string, content: Node[], { isQuiet = false, labelled = false } = {}): void {
    this.#turn += 1
    clearTimeout(this.#poll)
    const hadFocus = this.#root.activeElement !== null
    const heading = h('h2', { tabindex: '-1', ...(labelled || isQuiet ? { class: 'label' } : {}) }, title)
    this.#view.replaceChildren(heading, ...content)
    this.#say(isQuiet ? '' : title)
    if (hadFocus && !isQuiet) heading.focus()
  }
}

function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

function button(kind: string, label: string, onClick: () => unknown): HTMLButtonElement {
  const element = h('button', { type: 'button', ...(kind === '' ? {} : { class: kind }) }, label)
  element.addEventListener('click', onClick)
  return element
}

function submitButton(label: string): HTMLButtonElement {
  return h('button', { type: 'submit', class: 'primary' }, label)
}

// Not `disabled`, which would remove the focus.
function setBusy(element: HTMLButtonElement, isBusy: boolean): void {
  element.setAttribute('aria-disabled', String(isBusy))
}

function isBusy(element: HTMLButtonElement): boolean {
  return element.getAttribute('aria-disabled') === 'true'
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : location.origin
}

if (customElements.get('midmonth-withdraw') === undefined) customElements.define('midmonth-withdraw', MidmonthWithdraw)
