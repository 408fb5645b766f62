SELECT i.item_id, count(*) AS positions, sum(i.quantity) AS quantity
FROM (SELECT transaction_id FROM transactions WHERE final_amount >= 80) t
JOIN transaction_items i ON i.transaction_id = t.transaction_id
GROUP BY i.item_id
ORDER BY i.item_id
