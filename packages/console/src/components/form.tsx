import { ApiError, type Money, money } from '@midmonth/sdk'
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { sessionEnded } from '../api.ts'
import { formatMoney, inWords } from '../format.ts'
import { isOfEarlierAttempt } from '../held-keys.ts'
import { messageOf } from '../problems.ts'
import { session } from '../session.ts'

type Fields = Record<string, string>
type Problems = ReadonlyMap<string, string>

/** The problems of a form by field, and the names of the fields that show their problems. */
const FormContext = createContext({ problems: new Map() as Problems, shown: new Set<string>() })

type FormProps = {
  submit: string
  /** Whether submitting cannot be undone. */
  isFinal?: boolean
  onSubmit: (fields: Fields) => PromiseLike<unknown>
  children?: ComponentChildren
}

/**
 * A form that shows each issue at the field it names. Issues without a field appear above the form.
 * @param props.onSubmit receives the trimmed text of each field
 */
export function Form({ submit, isFinal = false, onSubmit, children }: FormProps) {
  const form = useSavedEntries(submit)
  const [problems, setProblems] = useState<Problems>(new Map())
  const [isBusy, setIsBusy] = useState(false)
  const { current: shown } = useRef(new Set<string>())
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const fields = fieldsOf(event.currentTarget as HTMLFormElement)
    setIsBusy(true)
    setProblems(new Map())
    try {
      await onSubmit(fields)
    } catch (error) {
      setProblems(problemsOf(error, [...shown, ...Object.keys(fields)]))
    }
    setIsBusy(false)
  }
  const others = [...problems].filter(([name]) => !shown.has(name)).map(([, message]) => message)
  return (
    <form ref={form} class="stack" onSubmit={send} noValidate>
      {others.length > 0 && (
        <p class="problem" role="alert">
          {others.join('; ')}
        </p>
      )}
      <FormContext.Provider value={{ problems, shown }}>{children}</FormContext.Provider>
      <div>
        <button
          type="submit"
          class={`button ${isFinal ? 'button-final' : 'button-main'}`}
          disabled={isBusy}
          // The first click may already have put another form in this place.
          onClick={event => event.detail > 1 && event.preventDefault()}
        >
          {submit}
        </button>
      </div>
    </form>
  )
}

/**
 * The problem of a field that shows it, from the last submission of the form.
 * @param names the field's own name, then other names under which the service may report its problems
 */
function useProblem(...names: string[]): string | undefined {
  const { problems, shown } = useContext(FormContext)
  useLayoutEffect(() => {
    for (const name of names) shown.add(name)
    return () => {
      for (const name of names) shown.delete(name)
    }
  }, [names.join()])
  return names.map(name => problems.get(name)).find(problem => problem !== undefined)
}

function ProblemOf({ name, problem }: { name: string; problem: string | undefined }) {
  if (problem === undefined) return null
  return (
    <span class="field-problem" id={`problem-${name}`}>
      {problem}
    </span>
  )
}

function fieldsOf(form: HTMLFormElement): Fields {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]))
}

/** The entries of forms that were open when the session ended, by reader, page and form. */
const savedEntries = new Map<string, Fields>()

/** Keeps a form's entries when the session ends, so that the same reader can continue after signing in. Passwords are not kept. */
function useSavedEntries(submit: string) {
  const ref = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => {
    const form = ref.current
    if (form === null) return
    const name = [session.peek()?.user.id, location.pathname, submit].join(' ')
    const fields = savedEntries.get(name)
    savedEntries.delete(name)
    if (fields !== undefined) fillIn(form, fields)
    return () => {
      if (!sessionEnded.peek()) return
      const fields = fieldsOf(form)
      for (const { name } of form.querySelectorAll<HTMLInputElement>('[type=password]')) delete fields[name]
      savedEntries.set(name, fields)
    }
  }, [])
  return ref
}

function fillIn(form: HTMLFormElement, fields: Fields): void {
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select')) {
    const text = fields[field.name]
    if (field instanceof HTMLInputElement && (field.type === 'checkbox' || field.type === 'radio'))
      field.checked = text === field.value
    else if (text !== undefined) field.value = text
  }
}

/** Problems with the entries of a form, by field name. */
export class FieldProblems extends Error {
  readonly problems: Map<string, string>

  constructor(problems: Map<string, string>) {
    super([...problems.values()].join('; '))
    this.problems = problems
  }
}

type FieldReader = <Value>(name: string, parse: (text: string) => Value) => Value

/**
 * Parses the entries of a form and collects the problem of every field.
 * @throws FieldProblems
 */
export function readFields<Result>(fields: Fields, read: (field: FieldReader) => Result): Result {
  const problems = new Map<string, string>()
  const result = read((name, parse) => {
    try {
      return parse(fields[name] ?? '')
    } catch (error) {
      problems.set(name, error instanceof Error ? error.message : String(error))
      // Never used: the problems are thrown below.
      return undefined as never
    }
  })
  if (problems.size > 0) throw new FieldProblems(problems)
  return result
}

/** Parses an amount in major units, for `readFields`. */
export function amountIn(currency: Money['currency']): (text: string) => Money {
  return text => {
    const read = money(text, currency)
    if (read.amount < 0) throw new RangeError('Must not be negative')
    return read
  }
}

/**
 * Requires that the reader has typed an amount once more.
 * @throws FieldProblems
 */
export function requireAmount(
  fields: Fields,
  name: string,
  { money: wanted, what }: { money: Money; what: string },
): void {
  const isSame = readFields(fields, field => field(name, text => money(text, wanted.currency).amount === wanted.amount))
  if (!isSame) throw new FieldProblems(new Map([[name, `Does not match ${what}, ${formatMoney(wanted)}`]]))
}

/** Parses an empty field as null, for `readFields`. */
export function orNull<Value>(parse: (text: string) => Value): (text: string) => Value | null {
  return text => (text === '' ? null : parse(text))
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new TypeError('Must be a whole number')
  return Number(text)
}

function problemsOf(error: unknown, names: string[]): Map<string, string> {
  if (error instanceof FieldProblems) return error.problems
  if (!(error instanceof ApiError) || error.issues.length === 0 || isOfEarlierAttempt(error))
    return new Map([['', messageOf(error)]])
  return new Map(
    error.issues.map((issue, index) => {
      const path = 'path' in issue ? String(issue.path) : ''
      const name = names.find(each => path === each || path.endsWith(`.${each}`) || path.startsWith(`${each}.`))
      return [name ?? `other ${index}`, issue.message]
    }),
  )
}

type FieldProps = {
  label: string
  name: string
  value?: string | null
  note?: string
  type?: 'text' | 'email' | 'url' | 'tel' | 'password' | 'date'
  suggestions?: readonly string[]
  isRequired?: boolean
  /** Other names under which the service reports problems with this field. */
  problemsOf?: string[]
}

export function Field(props: FieldProps) {
  const { label, name, value, note, type = 'text', suggestions, isRequired = false, problemsOf = [] } = props
  const problem = useProblem(name, ...problemsOf)
  return (
    <label class="field stack">
      <span>{label}</span>
      <input
        // The JSX types expect one literal; all of these types take the same attributes.
        type={type as 'text'}
        name={name}
        defaultValue={value ?? ''}
        required={isRequired}
        aria-invalid={problem !== undefined}
        aria-describedby={problem === undefined ? undefined : `problem-${name}`}
        autocomplete="off"
        list={suggestions && `suggestions-${name}`}
      />
      {suggestions && (
        <datalist id={`suggestions-${name}`}>
          {suggestions.map(each => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
      <ProblemOf name={name} problem={problem} />
      {note && <span class="field-note">{note}</span>}
    </label>
  )
}

/** The reason for a decision, which other operators read. */
export function ReasonField({ label = 'Reason' }: { label?: string }) {
  return <Field label={label} name="note" note="For operators and the audit log; no personal data" isRequired />
}

type ChoiceProps = {
  label: string
  name: string
  value?: string
  /** The titles by value, or values that are their own titles. */
  choices: Record<string, string> | readonly string[]
  missing?: string
}

/** @param props.missing what to show instead of the service's message about a missing choice */
export function Choice({ label, name, value, choices, missing }: ChoiceProps) {
  const problem = useProblem(name)
  const titles = Array.isArray(choices) ? choices.map(each => [each, each]) : Object.entries(choices)
  return (
    <label class="field stack">
      <span>{label}</span>
      <select name={name} defaultValue={value}>
        {titles.map(([key, title]) => (
          <option key={key} value={key} selected={key === value}>
            {title}
          </option>
        ))}
      </select>
      <ProblemOf name={name} problem={problem && (missing ?? problem)} />
    </label>
  )
}

/** Who bears the charge of a bank. */
export function BorneBy({ label }: { label: string }) {
  return (
    <Choice
      label={label}
      name="borneBy"
      value="operator"
      choices={{ operator: 'The operator', partner: 'The partner' }}
    />
  )
}

/**
 * Options with their meanings: radio buttons, or checkboxes whose names are the values.
 * @param props.missing what to show if nothing is chosen
 */
export function Options<Value extends string>({
  label,
  name,
  meanings,
  among = Object.keys(meanings) as Value[],
  titleOf = inWords,
  isMany = false,
  checked = [],
  missing,
  onChoose,
}: {
  label: string
  name: string
  meanings: Readonly<Record<Value, string>>
  /** The options to offer; defaults to all. */
  among?: readonly Value[]
  titleOf?: (value: Value) => string
  isMany?: boolean
  checked?: readonly string[]
  missing?: string
  onChoose?: (value: Value) => void
}) {
  const problem = useProblem(name)
  return (
    <fieldset class="role-fields stack" aria-describedby={problem && `problem-${name}`}>
      <legend>{label}</legend>
      {among.map(value => (
        <label key={value}>
          <input
            type={isMany ? 'checkbox' : 'radio'}
            name={isMany ? value : name}
            value={isMany ? 'on' : value}
            defaultChecked={checked.includes(value)}
            onChange={() => onChoose?.(value)}
          />
          <span>
            <b>{titleOf(value)}</b> <span class="quiet">{meanings[value]}</span>
          </span>
        </label>
      ))}
      <ProblemOf name={name} problem={problem && (missing ?? problem)} />
    </fieldset>
  )
}

/** A checkbox; `onSubmit` receives `on`, or nothing. */
export function Check({ label, name, isOn }: { label: string; name: string; isOn: boolean }) {
  return (
    <label class="check">
      <input type="checkbox" name={name} defaultChecked={isOn} />
      <span>{label}</span>
    </label>
  )
}
