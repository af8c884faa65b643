#!/bin/sh
# Creates the roles and the database when the volume is empty.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 \
  --set owner_password="$OWNER_PASSWORD" --set app_password="$APP_PASSWORD" <<'SQL'
create role midmonth_owner login password :'owner_password';
create role midmonth_app login password :'app_password';
create role midmonth_read;
create database midmonth owner midmonth_owner;
SQL
