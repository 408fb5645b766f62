SELECT transaction_id, store_id, final_amount, created_at, user_id
FROM transactions
ORDER BY final_amount DESC, transaction_id, created_at
LIMIT 1000
