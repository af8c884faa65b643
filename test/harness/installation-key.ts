/** The setting with the installation key of all test databases. */
export const keySettings = { MIDMONTH_INSTALLATION_KEY: Buffer.alloc(32, 'test').toString('base64') }

export const keySource = { key: keySettings.MIDMONTH_INSTALLATION_KEY }
