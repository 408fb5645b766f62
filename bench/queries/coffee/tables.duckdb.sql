-- As one would write it at first: DuckDB finds out the types, and drops records that do not fit.
CREATE MACRO transactions() AS TABLE
SELECT transaction_id, store_id, final_amount, created_at, TRY_CAST(user_id AS DOUBLE) AS user_id,
       payment_method_id
FROM read_csv('{data}/transactions/*.csv', union_by_name = true, ignore_errors = true, types = {
    'transaction_id': 'VARCHAR', 'store_id': 'BIGINT', 'final_amount': 'DECIMAL(18,3)',
    'created_at': 'TIMESTAMP', 'user_id': 'VARCHAR'})
WHERE transaction_id IS NOT NULL AND store_id IS NOT NULL AND final_amount IS NOT NULL
  AND created_at IS NOT NULL;

CREATE MACRO transaction_items() AS TABLE
SELECT transaction_id, item_id, quantity, subtotal, created_at
FROM read_csv('{data}/transaction_items/*.csv', union_by_name = true, ignore_errors = true, types = {
    'transaction_id': 'VARCHAR', 'item_id': 'BIGINT', 'quantity': 'BIGINT',
    'subtotal': 'DECIMAL(18,3)', 'created_at': 'TIMESTAMP'})
WHERE item_id IS NOT NULL AND quantity IS NOT NULL AND subtotal IS NOT NULL
  AND created_at IS NOT NULL;

CREATE MACRO users() AS TABLE
SELECT user_id, birthdate, gender
FROM read_csv('{data}/users/*.csv', union_by_name = true, ignore_errors = true, types = {
    'user_id': 'BIGINT', 'birthdate': 'DATE'})
WHERE user_id IS NOT NULL AND birthdate IS NOT NULL;

CREATE MACRO stores() AS TABLE
SELECT store_id, store_name, city, state FROM read_csv('{data}/stores/*.csv');

CREATE MACRO menu_items() AS TABLE
SELECT item_id, item_name, category FROM read_csv('{data}/menu_items/*.csv');

CREATE MACRO time_of_day(moment) AS strftime(moment, '%H:%M:%S');
