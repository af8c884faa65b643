# The API, the worker and the commands, without a PostgreSQL. docs/operations/containers.md says how to run it.
ARG BASE=docker.io/library/node:24.21.0-bookworm-slim

FROM ${BASE} AS build
WORKDIR /app
COPY . .
# Builds the console and the packages, then drops what only that needs, and the Node and PostgreSQL that npm brings elsewhere.
RUN npm ci --no-audit --no-fund && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${BASE}
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app ./
RUN ln -s /app/cli/launch.mjs /usr/local/bin/midmonth \
  && install -d -o 1000 -g 1000 -m 700 /var/lib/midmonth \
  # Compiles the program once; the image is read-only when it runs.
  && midmonth --version
ENV MIDMONTH_STATE_DIR=/var/lib/midmonth
USER 1000:1000
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT ?? 8080}/readyz`).catch(() => fetch(`http://127.0.0.1:${process.env.MIDMONTH_HEALTH_PORT ?? 8081}/readyz`)).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["midmonth"]
CMD ["start"]
