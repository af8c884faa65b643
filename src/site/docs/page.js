// The script of all documentation pages: keeps the test key, fills in known ids, builds and sends requests, and searches.

const keyPattern = /^mm_test_[A-Za-z0-9_-]+$/
const idPattern = /\b([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g

// A private window may refuse storage. The values then last until the page is closed.
const memory = new Map()
function remember(name, value) {
  memory.set(name, value)
  try {
    localStorage.setItem(`midmonth.${name}`, value)
  } catch {}
}
function recall(name) {
  try {
    return localStorage.getItem(`midmonth.${name}`) ?? memory.get(name) ?? ''
  } catch {
    return memory.get(name) ?? ''
  }
}

const knownIds = () => JSON.parse(recall('ids') || '{}')

/** Takes the key from a link such as /docs#key=mm_test_…; a fragment is never sent to a server. */
function takeKeyFromAddress() {
  const key = new URLSearchParams(location.hash.slice(1)).get('key')
  if (key === null) return
  history.replaceState(null, '', location.pathname + location.search)
  if (keyPattern.test(key)) useKey(key)
}

function useKey(key) {
  // Ids belong to the partner of the key. Entering the same key again clears them, in case the member no longer exists.
  remember('ids', '{}')
  remember('key', key)
}

/** Stores the ids of a response, to fill in the next request; of a list, only ids that are not known yet. */
function learnIds(value, isInList = false) {
  if (Array.isArray(value)) {
    for (const each of value) learnIds(each, true)
  } else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) learnIds(each, isInList)
  } else if (typeof value === 'string') {
    for (const [id, prefix] of value.matchAll(idPattern)) {
      const ids = knownIds()
      if (!isInList || ids[prefix] === undefined) remember('ids', JSON.stringify({ ...ids, [prefix]: id }))
    }
  }
}

/** Replaces example ids with known ones. */
function withKnownIds(text) {
  const ids = knownIds()
  return text.replace(idPattern, (id, prefix) => ids[prefix] ?? id)
}

/** Finds a member for the examples: the first of the demo data, or any active one. */
async function findMember() {
  if (recall('key') === '' || knownIds().mem !== undefined) return
  for (const query of ['emails=sam.okafor%40example.com', 'statuses=active&take=1']) {
    const answer = await fetch(`/v1/members?${query}`, { headers: { 'x-api-key': recall('key') } })
    if (!answer.ok) return answer.status === 401 && showKeyState('The service refuses this key')
    const { members } = await answer.json()
    if (members.length > 0) return learnIds(members[0].memberId)
  }
}

function showKey() {
  const form = document.querySelector('form.key')
  if (form === null) return
  form.hidden = false
  form.elements.key.value = recall('key')
  for (const hint of document.querySelectorAll('.without-key')) hint.hidden = recall('key') !== ''
}

function showKeyState(text) {
  document.querySelector('.key-state').textContent = text
}

function wireKeyForm() {
  const form = document.querySelector('form.key')
  if (form === null) return
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const key = form.elements.key.value.trim()
    if (key !== '' && !keyPattern.test(key)) {
      showKeyState('A test key begins with mm_test_')
      return
    }
    useKey(key)
    showKeyState(key === '' ? 'Key removed' : 'Key stored in this browser')
    await prepareConsoles()
  })
}

async function prepareConsoles() {
  showKey()
  await findMember().catch(() => {})
  for (const form of consoles()) {
    for (const field of form.querySelectorAll('input[data-in=path], textarea')) field.value = withKnownIds(field.value)
    showCurl(form)
  }
}

const consoles = () => document.querySelectorAll('form.console')

function wireConsole(form) {
  showBody(form)
  form.addEventListener('input', () => {
    showBody(form)
    showCurl(form)
  })
  form.addEventListener('submit', event => {
    event.preventDefault()
    if (form.dataset.canSend === 'yes') void send(form)
  })
  const fresh = form.querySelector('.fresh-key')
  if (fresh !== null) {
    fresh.hidden = false
    fresh.addEventListener('click', () => {
      const random = crypto.getRandomValues(new Uint8Array(16))
      fresh.parentElement.querySelector('input').value = [...random]
        .map(byte => byte.toString(16).padStart(2, '0'))
        .join('')
      showCurl(form)
    })
  }
  const copy = form.querySelector('.copy')
  // Browsers offer the clipboard only over HTTPS and on localhost.
  copy.hidden = navigator.clipboard === undefined
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(form.querySelector('.curl code').textContent)
    copy.textContent = 'Copied'
  })
}

/** Shows only the field of the chosen media type. */
function showBody(form) {
  const { mediaType } = form.elements
  for (const label of form.querySelectorAll('[data-body]')) label.hidden = label.dataset.body !== mediaType.value
}

function requestOf(form) {
  const headers = new Headers()
  const query = new URLSearchParams()
  let path = form.dataset.path
  for (const { name, value, dataset } of form.querySelectorAll('[data-in]')) {
    if (value.trim() === '') continue
    if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value.trim()))
    if (dataset.in === 'header') headers.set(name, value.trim())
    const values = dataset.list === undefined ? [value] : value.split(',')
    if (dataset.in === 'query') for (const each of values) query.append(name, each.trim())
  }
  const label = form.querySelector('[data-body]:not([hidden])')
  const mediaType = label?.dataset.body
  const text = label?.querySelector('textarea')?.value
  const file = label?.querySelector('input[type=file]')?.files[0]
  if (mediaType !== undefined && mediaType !== 'multipart/form-data') headers.set('content-type', mediaType)
  const search = query.size > 0 ? `?${query}` : ''
  return { method: form.dataset.method, url: path + search, headers, mediaType, text, file }
}

function bodyOf({ mediaType, text, file }) {
  if (mediaType !== 'multipart/form-data' || file === undefined) return text ?? file
  const body = new FormData()
  body.set('file', file)
  return body
}

function showCurl(form) {
  const { method, url, headers, mediaType, text, file } = requestOf(form)
  const key = form.dataset.canSend === 'yes' ? recall('key') : ''
  const parts = [`curl -X ${method} ${quoted(location.origin + url)}`]
  if (form.dataset.needsKey === 'yes') {
    parts.push(key === '' ? '-H "x-api-key: $MIDMONTH_API_KEY"' : `-H ${quoted(`x-api-key: ${key}`)}`)
  }
  if (form.dataset.needsToken === 'yes') parts.push('-H "authorization: Bearer $TOKEN"')
  for (const [name, value] of headers) parts.push(`-H ${quoted(`${name}: ${value}`)}`)
  const fileName = file?.name ?? 'members.xlsx'
  if (text !== undefined) parts.push(`--data-binary ${quoted(text)}`)
  else if (mediaType === 'multipart/form-data') parts.push(`-F ${quoted(`file=@${fileName}`)}`)
  else if (mediaType !== undefined) parts.push(`--data-binary ${quoted(`@${fileName}`)}`)
  form.querySelector('.curl code').textContent = parts.join(' \\\n  ')
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}

async function send(form) {
  const progress = form.querySelector('.progress')
  const key = recall('key')
  if (form.dataset.needsKey === 'yes' && key === '') {
    progress.textContent = 'Paste the test key at the top first'
    document.querySelector('form.key input').focus()
    return
  }
  const request = requestOf(form)
  if (form.dataset.needsKey === 'yes') request.headers.set('x-api-key', key)
  progress.textContent = 'Sending…'
  const startedAt = performance.now()
  try {
    const { method, url, headers } = request
    const answer = await fetch(url, { method, headers, body: bodyOf(request), cache: 'no-store' })
    const text = await answer.text()
    progress.textContent = ''
    showAnswer(form, { answer, text, ms: Math.round(performance.now() - startedAt) })
  } catch (error) {
    progress.textContent = `No answer: ${error.message}`
  }
}

function showAnswer(form, { answer, text, ms }) {
  let shown = text
  if (answer.headers.get('content-type')?.includes('json')) {
    const value = JSON.parse(text)
    shown = JSON.stringify(value, null, 2)
    if (answer.ok) learnIds({ value, location: answer.headers.get('location') })
  }
  const result = form.querySelector('.result')
  result.hidden = false
  const status = result.querySelector('.result-status')
  status.textContent = `${answer.status} ${answer.statusText} · ${ms} ms`
  status.className = `result-status ${answer.ok ? 'success' : 'refusal'}`
  result.querySelector('.result-body').textContent = shown
  result.querySelector('.result-headers').textContent = [...answer.headers]
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
}

const foundMax = 12

/** Loads the search engine and the entries when the reader first needs them. */
function wireSearch() {
  const form = document.querySelector('form.search')
  const { query } = form.elements
  const panel = form.querySelector('.found')
  let loading
  const load = () => {
    loading ??= loadIndex(form.dataset)
    return loading
  }
  const show = async () => {
    const asked = query.value.trim()
    panel.hidden = asked === ''
    if (asked === '') return
    try {
      const index = await load()
      // The reader may have continued typing in the meantime.
      if (asked === query.value.trim()) showFound(panel, index.search(asked))
    } catch {
      panel.querySelector('p').textContent = 'The search did not load; reload the page'
    }
  }
  form.hidden = false
  query.addEventListener('focus', () => void load().catch(() => {}), { once: true })
  query.addEventListener('input', show)
  form.addEventListener('submit', event => {
    event.preventDefault()
    panel.querySelector('a')?.click()
  })
  form.addEventListener('keydown', event => {
    const links = [query, ...panel.querySelectorAll('a')]
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape') {
      query.focus()
      panel.hidden = true
    } else if (step !== undefined) {
      event.preventDefault()
      links[links.indexOf(document.activeElement) + step]?.focus()
    }
  })
  document.addEventListener('click', event => {
    if (!form.contains(event.target) || event.target.closest('a') !== null) panel.hidden = true
  })
  document.addEventListener('keydown', event => {
    const isTyping = event.target.matches('input, textarea, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    query.focus()
  })
}

async function loadIndex({ engine, entries }) {
  const [{ default: MiniSearch }, loaded] = await Promise.all([import(engine), import(entries)])
  const index = new MiniSearch({
    fields: ['title', 'heading', 'text'],
    storeFields: ['title', 'heading', 'address', 'text'],
    searchOptions: {
      boost: { title: 3, heading: 4 },
      combineWith: 'AND',
      prefix: true,
      // Pages about the source come after pages for partners and operators.
      boostDocument: (_id, _term, { address }) => (/^\/docs\/(internals|decisions)\//.test(address) ? 0.5 : 1),
      // One typing error in five letters.
      fuzzy: term => (term.length > 4 ? 0.2 : false),
    },
  })
  index.addAll(loaded.entries)
  return index
}

function showFound(panel, found) {
  panel.querySelector('p').textContent =
    found.length === 0 ? 'Nothing found' : `${Math.min(found.length, foundMax)} of ${found.length}`
  const items = found.slice(0, foundMax).map(({ title, heading, address, text, terms }) => {
    const link = document.createElement('a')
    link.href = address
    link.append(Object.assign(document.createElement('b'), { textContent: heading === '' ? title : heading }))
    const about = heading === '' ? '' : `${title} · `
    link.append(Object.assign(document.createElement('span'), { textContent: about + excerpt(text, terms) }))
    const item = document.createElement('li')
    item.append(link)
    return item
  })
  panel.querySelector('ul').replaceChildren(...items)
}

/** The part of a text around its first search term. */
function excerpt(text, terms) {
  const lower = text.toLowerCase()
  const at = Math.min(...terms.map(term => lower.indexOf(term)).filter(index => index >= 0), text.length)
  const start = at < 60 || at === text.length ? 0 : lower.lastIndexOf(' ', at - 40) + 1
  return `${start > 0 ? '…' : ''}${text.slice(start, start + 140)}${text.length > start + 140 ? '…' : ''}`
}

takeKeyFromAddress()
// On a phone, the navigation would fill the screen.
if (matchMedia('(max-width: 800px)').matches) document.querySelector('.menu').open = false
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' })
wireKeyForm()
wireSearch()
for (const form of consoles()) wireConsole(form)
void prepareConsoles()
