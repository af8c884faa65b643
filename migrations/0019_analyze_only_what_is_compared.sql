-- Planning a list analyzes its rows first. Most of that time went into columns that no query compares or joins by, so they need
-- no statistics.

set local lock_timeout = '5s';

alter table member_job_rows
  alter column new_member_id set statistics 0,
  alter column first_name set statistics 0,
  alter column last_name set statistics 0,
  alter column phone set statistics 0,
  alter column tier set statistics 0,
  alter column account_holder set statistics 0,
  alter column sort_code set statistics 0,
  alter column account_number set statistics 0,
  alter column iban set statistics 0,
  alter column dob set statistics 0,
  alter column gender set statistics 0,
  alter column enable_payroll set statistics 0;
alter table members
  alter column first_name set statistics 0,
  alter column last_name set statistics 0,
  alter column phone set statistics 0,
  alter column account_holder set statistics 0,
  alter column sort_code set statistics 0,
  alter column account_number set statistics 0,
  alter column iban set statistics 0,
  alter column dob set statistics 0,
  alter column gender set statistics 0;
alter table events alter column data set statistics 0;
