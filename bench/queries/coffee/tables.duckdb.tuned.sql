-- The dialect and the types are told, so that nothing is sniffed. One month has its columns in
-- another order: it is read by itself.
SET preserve_insertion_order = false;

CREATE MACRO transactions() AS TABLE
SELECT transaction_id, store_id, final_amount, created_at, TRY_CAST(user_id AS DOUBLE) AS user_id,
       payment_method_id
FROM (
    SELECT transaction_id, store_id, final_amount, created_at, user_id, payment_method_id
    FROM read_csv(['{data}/transactions/transactions_2023*.csv',
        '{data}/transactions/transactions_20240[1-46-9].csv',
        '{data}/transactions/transactions_20241*.csv',
        '{data}/transactions/transactions_2025*.csv'], auto_detect = false,
        header = true, delim = ',', quote = '', escape = '', ignore_errors = true, columns = {
        'transaction_id': 'VARCHAR', 'store_id': 'INTEGER', 'payment_method_id': 'VARCHAR',
        'voucher_id': 'VARCHAR', 'user_id': 'VARCHAR', 'original_amount': 'VARCHAR',
        'discount_applied': 'VARCHAR', 'final_amount': 'DECIMAL(18,3)', 'created_at': 'TIMESTAMP'})
    UNION ALL
    SELECT transaction_id, store_id, final_amount, created_at, user_id, payment_method_id
    FROM read_csv('{data}/transactions/transactions_202405.csv', auto_detect = false,
        header = true, delim = ',', quote = '', escape = '', ignore_errors = true, columns = {
        'created_at': 'TIMESTAMP', 'transaction_id': 'VARCHAR', 'final_amount': 'DECIMAL(18,3)',
        'store_id': 'INTEGER', 'user_id': 'VARCHAR', 'payment_method_id': 'VARCHAR',
        'voucher_id': 'VARCHAR', 'original_amount': 'VARCHAR', 'discount_applied': 'VARCHAR'})
)
WHERE transaction_id IS NOT NULL AND store_id IS NOT NULL AND final_amount IS NOT NULL
  AND created_at IS NOT NULL;

CREATE MACRO transaction_items() AS TABLE
SELECT transaction_id, item_id, quantity, subtotal, created_at
FROM read_csv('{data}/transaction_items/*.csv', auto_detect = false, header = true, delim = ',',
    quote = '', escape = '', ignore_errors = true, columns = {
    'transaction_id': 'VARCHAR', 'item_id': 'INTEGER', 'quantity': 'INTEGER',
    'unit_price': 'VARCHAR', 'subtotal': 'DECIMAL(18,3)', 'created_at': 'TIMESTAMP'})
WHERE item_id IS NOT NULL AND quantity IS NOT NULL AND subtotal IS NOT NULL
  AND created_at IS NOT NULL;

CREATE MACRO users() AS TABLE
SELECT user_id, birthdate, gender
FROM read_csv('{data}/users/*.csv', auto_detect = false, header = true, delim = ',',
    quote = '', escape = '', ignore_errors = true, columns = {
    'user_id': 'BIGINT', 'gender': 'VARCHAR', 'birthdate': 'DATE', 'registered_at': 'VARCHAR'})
WHERE user_id IS NOT NULL AND birthdate IS NOT NULL;

CREATE MACRO stores() AS TABLE
SELECT store_id, store_name, city, state FROM read_csv('{data}/stores/*.csv');

CREATE MACRO menu_items() AS TABLE
SELECT item_id, item_name, category FROM read_csv('{data}/menu_items/*.csv');

CREATE MACRO time_of_day(moment) AS strftime(moment, '%H:%M:%S');
