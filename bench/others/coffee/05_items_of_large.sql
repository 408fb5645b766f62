-- Join on a text key: what is in the largest sales.

SELECT i.item_id, count(*) AS positions, sum(i.quantity) AS quantity
FROM transactions t
JOIN transaction_items i ON i.transaction_id = t.transaction_id
WHERE t.final_amount >= 80
GROUP BY i.item_id
ORDER BY i.item_id;
