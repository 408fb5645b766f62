SELECT store_id, user_id, created_at, final_amount, transaction_id
FROM transactions
WHERE final_amount >= 72
ORDER BY store_id, user_id NULLS LAST, created_at, transaction_id, final_amount
