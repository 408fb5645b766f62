SELECT CASE x WHEN 1 THEN 'a' ELSE NULL END, CAST(a AS INT)::TEXT[][1], EXTRACT(year FROM d) -- c
, ((SELECT 1) UNION ALL SELECT 2), NOT a = b IS NULL, - (1 + 2) * 3 // 4 % 5 || "q" /* c */
