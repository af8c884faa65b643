/**
 * Countries whose IBANs SEPA credit transfers reach, as in EPC409-09, "EPC list of SEPA scheme countries". Known on 2026-11-23: the
 * 27 of the European Union, Iceland, Liechtenstein and Norway, then those that joined one by one, the last of them Albania and
 * Montenegro (2024), Moldova and North Macedonia (2025), and Serbia (2025, payments since May 2026). Guernsey, Jersey and the Isle of
 * Man have IBANs of GB, most French territories those of FR. A rail can change the list.
 */
const sepaCountries =
  'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK IS LI NO ' +
  'AD AL CH GB GI MC MD ME MK RS SM VA'

/** Changes to the list of countries, by their two letters. */
export type CountryChanges = { add?: readonly string[] | undefined; remove?: readonly string[] | undefined }

/** The countries whose IBANs a rail pays to. */
export function countriesPaid({ add = [], remove = [] }: CountryChanges = {}): ReadonlySet<string> {
  const countries = new Set([...sepaCountries.split(' '), ...add])
  for (const country of remove) countries.delete(country)
  return countries
}
