// The hosted page of a member. The token arrives in the fragment, which browsers send to no server.

const element = document.querySelector('openwage-withdraw')
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

// For this tab only, because phones drop pages in the background. A private window may refuse it.
function remember(token) {
  try {
    sessionStorage.setItem('openwage.token', token)
  } catch {}
}
function recall() {
  try {
    return sessionStorage.getItem('openwage.token') ?? ''
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
// Whose page it is: a link from a text message should look like the employer's.
element.addEventListener('openwage-session', ({ detail: { employer } }) => {
  const header = document.querySelector('header')
  header.querySelector('.employer').textContent = employer
  header.querySelector('.mark').textContent = [...employer][0] ?? ''
  header.hidden = false
  document.title = `${document.querySelector('h1').textContent} · ${employer}`
})
element.token = takeToken()
// Another link, opened in the same tab.
addEventListener('hashchange', () => {
  if (location.hash.length > 1) element.token = takeToken()
})
