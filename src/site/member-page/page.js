// The hosted page of a member. The token arrives in the fragment, which browsers do not send to any server.

const element = document.querySelector('midmonth-withdraw')
const titles = {
  de: 'Ihr Lohn',
  fr: 'Votre salaire',
  es: 'Su salario',
  pl: 'Twoje wynagrodzenie',
  ro: 'Salariul dumneavoastră',
}

/** Takes the token out of the address, so that it is neither bookmarked nor shared. */
function takeToken() {
  const token = location.hash.slice(1)
  if (token === '') return recall()
  history.replaceState(null, '', location.pathname)
  remember(token)
  return token
}

// Stored for this tab only, because phones drop pages in the background. A private window may refuse storage.
function remember(token) {
  try {
    sessionStorage.setItem('midmonth.token', token)
  } catch {}
}
function recall() {
  try {
    return sessionStorage.getItem('midmonth.token') ?? ''
  } catch {
    return ''
  }
}

document.documentElement.lang = navigator.language
const title = titles[navigator.language.slice(0, 2)]
if (title !== undefined) {
  document.title = title
  document.querySelector('h1').textContent = title
}
// Shows whose page this is: a link from a text message should look like the employer's.
element.addEventListener('midmonth-session', ({ detail: { employer } }) => {
  const header = document.querySelector('header')
  header.querySelector('.employer').textContent = employer
  const mark = header.querySelector('.mark')
  mark.classList.remove('has-logo')
  mark.textContent = [...employer][0] ?? ''
  header.hidden = false
  void showLogo(mark, employer)
  document.title = `${document.querySelector('h1').textContent} · ${employer}`
})

/** Shows the employer's logo in place of the first letter of the name. Best effort. */
async function showLogo(mark, employer) {
  const response = await fetch('/m/logo', { headers: { authorization: `Bearer ${element.token}` } }).catch(
    () => undefined,
  )
  if (response?.status !== 200) return
  const logo = new Image()
  logo.alt = ''
  logo.src = URL.createObjectURL(await response.blob())
  // A picture that the browser cannot read leaves the letter.
  await logo.decode().catch(() => logo.removeAttribute('src'))
  const isCurrent = document.querySelector('.employer').textContent === employer
  if (isCurrent && logo.hasAttribute('src')) {
    mark.replaceChildren(logo)
    mark.classList.add('has-logo')
  }
}

element.token = takeToken()
// Another link, opened in the same tab.
addEventListener('hashchange', () => {
  if (location.hash.length > 1) element.token = takeToken()
})
