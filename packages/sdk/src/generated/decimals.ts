// Generated from src/kernel/money.ts by `npm run generate`. Do not edit.

/** Currencies by the number of decimals of their minor unit, as in ISO 4217. The others have two. */
export const currenciesByDecimals: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XAG XAU XBA XBB XBC XBD XDR XOF XPD XPF XPT XSU XTS XUA XXX',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}
