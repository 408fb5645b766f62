-- Sales of a chain of cafés, as in "G Coffee Shop Transaction 202307 to 202506".
-- Each table is a folder of monthly files, or the same files side by side.

PARAMETER first_year = 2024;
PARAMETER last_year = 2025;

CREATE TABLE transactions (
    transaction_id TEXT NOT NULL,
    store_id INT NOT NULL,
    final_amount DECIMAL(18,3) NOT NULL,
    created_at TIMESTAMP NOT NULL,
    user_id INT
) FROM 'transactions/*.csv' OR 'transactions*.csv';

CREATE TABLE transaction_items (
    item_id INT NOT NULL,
    quantity INT NOT NULL,
    subtotal DECIMAL(18,3) NOT NULL,
    created_at TIMESTAMP NOT NULL
) FROM 'transaction_items/*.csv' OR 'transaction_items*.csv';

CREATE TABLE users (
    user_id INT NOT NULL,
    birthdate DATE NOT NULL
) FROM 'users/*.csv' OR 'users*.csv';

CREATE TABLE stores (
    store_id INT NOT NULL,
    store_name TEXT NOT NULL
) FROM 'stores/*.csv' OR 'stores*.csv';

CREATE TABLE menu_items (
    item_id INT NOT NULL,
    item_name TEXT NOT NULL
) FROM 'menu_items/*.csv' OR 'menu_items*.csv';
