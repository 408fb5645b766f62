/* SPDX-License-Identifier: Apache-2.0 */
/* gen_coffee.c - sales of a chain of cafés over 24 months.
 *
 * Sales of a month are written in order of time, each with its items, so that the two files of a
 * month are open together. Users come back to a store they like; thirty regulars, three for each
 * store, come equally often, so that the question for the best customers has ties to break.
 */
#include <stdio.h>

#include "engine/base/calendar.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "gen/gen_dirt.h"
#include "gen/gen_put.h"
#include "gen/gen_run.h"
#include "gen/gen_writer.h"

enum {
    MONTH_COUNT = 24,
    FIRST_YEAR = 2023,
    FIRST_MONTH = 7,
    STORE_COUNT = 10,
    ITEM_COUNT = 8,
    SALE_COUNT = 13600000,
    USER_COUNT = 2000000,
    REGULAR_COUNT = 3 * STORE_COUNT,
    REGULAR_LOST = 13,    /* This regular is in no file of users. */
    REORDERED_MONTH = 10, /* Its sales have their columns in another order. */
    DAY_SECONDS = 86400,
    STREAM_USERS = 100,
    STREAM_SALES = 200,
    STREAM_DIRT = 300,
};

struct coffee {
    struct gen_run *run;
    uint64_t sale_count; /* Per month. */
    uint64_t user_count; /* Per month. */
    struct gen_writer users;
    struct gen_writer sales;
    struct gen_writer items;
};

struct month {
    uint32_t index; /* 0..MONTH_COUNT-1 */
    uint32_t year;
    uint32_t month;
    uint32_t day_count;
};

static const uint8_t prices_in_halves[ITEM_COUNT] = {11, 14, 16, 16, 18, 19, 17, 21};

static const struct gen_columns user_columns = {
    .required = GEN_FIELD(0) | GEN_FIELD(2),
    .numbers = GEN_FIELD(0),
    .dates = GEN_FIELD(2) | GEN_FIELD(3),
    .texts = GEN_FIELD(1),
};
static const struct gen_columns sale_columns = {
    .required = GEN_FIELD(0) | GEN_FIELD(1) | GEN_FIELD(7) | GEN_FIELD(8),
    .numbers = GEN_FIELD(1) | GEN_FIELD(4) | GEN_FIELD(7),
    .dates = GEN_FIELD(8),
    .texts = GEN_FIELD(0) | GEN_FIELD(3),
};
static const struct gen_columns item_columns = {
    .required = GEN_FIELD(1) | GEN_FIELD(2) | GEN_FIELD(4) | GEN_FIELD(5),
    .numbers = GEN_FIELD(1) | GEN_FIELD(2) | GEN_FIELD(4),
    .dates = GEN_FIELD(5),
    .texts = GEN_FIELD(0),
};

enum { SALE_FIELDS = 9 };
static const uint8_t moved_order[SALE_FIELDS] = {8, 0, 7, 1, 4, 2, 3, 5, 6};

static uint32_t moved_columns(uint32_t columns)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < SALE_FIELDS; i++) {
        if ((columns & GEN_FIELD(moved_order[i])) != 0) moved |= GEN_FIELD(i);
    }
    return moved;
}

static struct month month_at(uint32_t index)
{
    uint32_t months = FIRST_YEAR * 12 + FIRST_MONTH - 1 + index;
    struct month month = {.index = index, .year = months / 12, .month = months % 12 + 1};
    month.day_count = calendar_days_in_month(month.year, month.month);
    return month;
}

static uint64_t regular_user(uint32_t regular)
{
    return 11 + 7 * (uint64_t)regular;
}

/* Regulars come by their own plan only; a chance visit would break their ties. */
static bool user_is_regular(uint64_t user)
{
    return user >= regular_user(0) && user <= regular_user(REGULAR_COUNT - 1) && user % 7 == 4;
}

/* Users who buy although they were never registered. */
static bool user_is_lost(const struct coffee *coffee, uint64_t user)
{
    if (user == regular_user(REGULAR_LOST)) return true;
    return hash_combine(coffee->run->options->seed, user) % 200 == 0;
}

/* Stores differ in size: the first number drawn is likelier to be a low one. */
static uint32_t pick_store(struct random *random)
{
    uint32_t a = random_below(random, STORE_COUNT);
    uint32_t b = random_below(random, STORE_COUNT + 6);
    return a < b ? a : b;
}

static status open_table(struct gen_writer *writer, struct gen_run *run, const char *table,
                         struct month month, struct error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/%s_%04u%02u.csv", table, table, month.year, month.month);
    return gen_writer_open(writer, run, name, err);
}

static char *put_user(char *at, struct random *random, uint64_t user, struct month month,
                      uint64_t second)
{
    at = gen_put_u64(at, user);
    at = gen_chance(random, 2) ? GEN_PUT(at, ",female,") : GEN_PUT(at, ",male,");
    at = gen_put_date(at, gen_date_between(random, 1964, 2009));
    at = gen_put_char(at, ',');
    at = gen_put_date(
        at, (struct gen_date){month.year, month.month, (uint32_t)(second / DAY_SECONDS) + 1});
    at = gen_put_char(at, ' ');
    at = gen_put_time(at, (uint32_t)(second % DAY_SECONDS));
    return gen_put_char(at, '\n');
}

static status write_users(struct coffee *coffee, struct month month, struct error *err)
{
    struct gen_writer *writer = &coffee->users;
    struct random random = gen_run_random(coffee->run, STREAM_USERS + month.index);
    struct gen_dirt dirt =
        gen_dirt_init(&user_columns, gen_run_random(coffee->run, STREAM_DIRT + month.index), 5000);
    uint64_t month_seconds = (uint64_t)month.day_count * DAY_SECONDS;
    uint64_t user = month.index * coffee->user_count;

    TRY(open_table(writer, coffee->run, "users", month, err));
    char *end = writer->at;
    if (month.index == 2) end = GEN_PUT(end, "\xef\xbb\xbf");
    TRY(gen_writer_take(writer, GEN_PUT(end, "user_id,gender,birthdate,registered_at\n"), err));
    for (uint64_t i = 0; i < coffee->user_count; i++) {
        user++;
        uint64_t second = i * month_seconds / coffee->user_count;
        end = put_user(writer->at, &random, user, month, second);
        if (user_is_lost(coffee, user)) continue;
        TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
    }
    return gen_writer_close(writer, month.index % 4 == 1 ? GEN_END_BARE : GEN_END_NEWLINE, err);
}

/* Who buys where. */
struct visit {
    uint64_t user; /* 0: an unknown customer. */
    uint32_t store;
};

static struct visit pick_visit(const struct coffee *coffee, struct random *random,
                               struct month month)
{
    struct visit visit = {.store = pick_store(random)};
    if (gen_chance(random, 2)) return visit;

    uint32_t known = (uint32_t)((month.index + 1) * coffee->user_count);
    visit.user = 1 + (uint64_t)(gen_chance(random, 4) ? gen_skewed(random, known, 10)
                                                      : random_below(random, known));
    if (user_is_regular(visit.user)) visit.user++;
    if (gen_chance(random, 2)) visit.store = (uint32_t)(hash_u64(visit.user) % STORE_COUNT);
    return visit;
}

/* Regulars of even stores come equally often; of the three of an odd store, the first takes over
 * the visits of the last near the end. */
static struct visit regular_visit(uint32_t number, struct month month)
{
    uint32_t regular = number % REGULAR_COUNT;
    uint32_t store = regular / 3;
    if (store % 2 == 1 && regular % 3 == 2 && month.index >= 20) regular -= 2;
    return (struct visit){.user = regular_user(regular), .store = store};
}

/* Sales of one month: how they spread over it. */
struct pace {
    uint64_t count;
    uint64_t regular_spacing; /* Every so many sales a regular comes; 0: never. */
    uint64_t regular_count;
};

static struct pace pace_of(uint64_t sale_count)
{
    struct pace pace = {.count = sale_count};
    if (sale_count < 10 * REGULAR_COUNT) return pace;
    pace.regular_count = REGULAR_COUNT * (1 + sale_count / 40000);
    pace.regular_spacing = sale_count / pace.regular_count;
    return pace;
}

struct moment {
    uint32_t day; /* From 1. */
    uint32_t second;
};

/* A day's sales: 6 of 128 before six, 4 of 128 after eleven at night, the rest between; and now and
 * then exactly at, or a second beside, the hours that the questions name. */
static struct moment sale_moment(struct random *random, struct month month, uint64_t index,
                                 uint64_t count)
{
    static const uint32_t edges[] = {21599, 21600, 82800, 82801, 21600, 82800, 0, 86399};
    uint64_t fine = index * month.day_count * (UINT64_C(1) << 20) / count;
    uint32_t within = (uint32_t)(fine & ((1 << 20) - 1));
    struct moment moment = {.day = (uint32_t)(fine >> 20) + 1};
    const uint32_t dawn = 6 << 13;
    const uint32_t night = 124 << 13;
    if (within < dawn) {
        moment.second = (uint32_t)((uint64_t)within * 21600 / dawn);
    } else if (within < night) {
        moment.second = 21600 + (uint32_t)((uint64_t)(within - dawn) * 61200 / (night - dawn));
    } else {
        moment.second = 82800 + (uint32_t)((uint64_t)(within - night) * 3600 / (4 << 13));
    }
    if (gen_chance(random, 1000)) moment.second = edges[random_below(random, 8)];
    return moment;
}

enum { ITEMS_MAX = 3 };

/* One sale while its two kinds of records are written. */
struct sale {
    char id[GEN_PUT_UUID_BYTES];
    char created_at[19];
    struct visit visit;
    uint32_t item_count;
    uint8_t items[ITEMS_MAX];
    uint8_t quantities[ITEMS_MAX];
    uint32_t amount_in_halves;
};

static struct sale sale_make(const struct coffee *coffee, struct random *random, struct month month,
                             uint64_t index, const struct pace *pace)
{
    struct sale sale = {.item_count = 1 + random_below(random, ITEMS_MAX)};
    uint64_t high = random_u64(random);
    (void)gen_put_uuid(sale.id, high, random_u64(random));
    struct moment moment = sale_moment(random, month, index, pace->count);
    char *at =
        gen_put_date(sale.created_at, (struct gen_date){month.year, month.month, moment.day});
    at = gen_put_char(at, ' ');
    (void)gen_put_time(at, moment.second);

    sale.visit = pick_visit(coffee, random, month);
    if (pace->regular_spacing != 0 && index % pace->regular_spacing == 0 &&
        index / pace->regular_spacing < pace->regular_count) {
        sale.visit = regular_visit((uint32_t)(index / pace->regular_spacing), month);
    }
    uint64_t bits = random_u64(random);
    for (uint32_t i = 0; i < sale.item_count; i++) {
        sale.items[i] = (uint8_t)(bits % ITEM_COUNT);
        /* What sells best changes with the season. */
        if ((bits >> 8) % 64 == 0) sale.items[i] = (uint8_t)(month.month % ITEM_COUNT);
        sale.quantities[i] = (uint8_t)(1 + (bits >> 14) % 3);
        sale.amount_in_halves += (uint32_t)prices_in_halves[sale.items[i]] * sale.quantities[i];
        bits >>= 16;
    }
    return sale;
}

static char *put_halves(char *at, uint32_t halves)
{
    at = gen_put_u64(at, halves / 2);
    return halves % 2 == 0 ? GEN_PUT(at, ".0") : GEN_PUT(at, ".5");
}

static char *put_sale(char *at, struct random *random, const struct sale *sale)
{
    uint64_t bits = random_u64(random);
    uint64_t amount = (uint64_t)sale->amount_in_halves * 500;
    uint64_t discount = 0;

    at = gen_put_bytes(at, sale->id, sizeof sale->id);
    at = gen_put_char(at, ',');
    at = gen_put_u64(at, sale->visit.store + 1);
    at = gen_put_char(at, ',');
    at = gen_put_char(at, (char)('1' + bits % 5));
    at = gen_put_char(at, ',');
    if (sale->visit.user != 0 && (bits >> 8) % 16 == 0) {
        /* 5, 10, 15 or 20 percent off: down to a third decimal. */
        discount = amount / 20 * (1 + (bits >> 12) % 4);
        at = gen_put_u64(at, 1 + (bits >> 16) % 40);
        at = GEN_PUT(at, ".0");
    }
    at = gen_put_char(at, ',');
    if (sale->visit.user != 0) {
        at = gen_put_u64(at, sale->visit.user);
        at = GEN_PUT(at, ".0");
    }
    at = gen_put_char(at, ',');
    at = gen_put_thousandths(at, amount);
    at = gen_put_char(at, ',');
    at = gen_put_thousandths(at, discount);
    at = gen_put_char(at, ',');
    at = gen_put_thousandths(at, amount - discount);
    at = gen_put_char(at, ',');
    at = gen_put_bytes(at, sale->created_at, sizeof sale->created_at);
    return gen_put_char(at, '\n');
}

static char *put_item(char *at, const struct sale *sale, uint32_t index)
{
    uint32_t price = prices_in_halves[sale->items[index]];
    at = gen_put_bytes(at, sale->id, sizeof sale->id);
    at = gen_put_char(at, ',');
    at = gen_put_char(at, (char)('1' + sale->items[index]));
    at = gen_put_char(at, ',');
    at = gen_put_char(at, (char)('0' + sale->quantities[index]));
    at = gen_put_char(at, ',');
    at = put_halves(at, price);
    at = gen_put_char(at, ',');
    at = put_halves(at, price * sale->quantities[index]);
    at = gen_put_char(at, ',');
    at = gen_put_bytes(at, sale->created_at, sizeof sale->created_at);
    return gen_put_char(at, '\n');
}

static status open_month(struct coffee *coffee, struct month month, struct error *err)
{
    TRY(open_table(&coffee->sales, coffee->run, "transactions", month, err));
    char *start = coffee->sales.at;
    char *end = GEN_PUT(start, "transaction_id,store_id,payment_method_id,voucher_id,user_id,"
                               "original_amount,discount_applied,final_amount,created_at\n");
    if (month.index == REORDERED_MONTH)
        end = gen_dirt_reorder(start, end, moved_order, SALE_FIELDS);
    TRY(gen_writer_take(&coffee->sales, end, err));

    TRY(open_table(&coffee->items, coffee->run, "transaction_items", month, err));
    end = coffee->items.at;
    if (month.index == 7) end = GEN_PUT(end, "\xef\xbb\xbf");
    end = GEN_PUT(end, "transaction_id,item_id,quantity,unit_price,subtotal,created_at\n");
    return gen_writer_take(&coffee->items, end, err);
}

static status write_sales(struct coffee *coffee, struct month month, struct error *err)
{
    struct gen_columns columns = sale_columns;
    bool is_reordered = month.index == REORDERED_MONTH;
    if (is_reordered) {
        columns.required = moved_columns(columns.required);
        columns.numbers = moved_columns(columns.numbers);
        columns.dates = moved_columns(columns.dates);
        columns.texts = moved_columns(columns.texts);
    }
    struct random random = gen_run_random(coffee->run, STREAM_SALES + month.index);
    struct gen_dirt sale_dirt = gen_dirt_init(
        &columns, gen_run_random(coffee->run, STREAM_DIRT + 100 + month.index), 10000);
    struct gen_dirt item_dirt = gen_dirt_init(
        &item_columns, gen_run_random(coffee->run, STREAM_DIRT + 200 + month.index), 10000);
    struct pace pace = pace_of(coffee->sale_count);
    struct gen_writer *sales = &coffee->sales;
    struct gen_writer *items = &coffee->items;

    TRY(open_month(coffee, month, err));
    for (uint64_t i = 0; i < coffee->sale_count; i++) {
        struct sale sale = sale_make(coffee, &random, month, i, &pace);
        char *end = put_sale(sales->at, &random, &sale);
        if (is_reordered) end = gen_dirt_reorder(sales->at, end, moved_order, SALE_FIELDS);
        TRY(gen_writer_end(sales, gen_dirt_pass(&sale_dirt, sales->at, end), err));
        for (uint32_t item = 0; item < sale.item_count; item++) {
            end = put_item(items->at, &sale, item);
            TRY(gen_writer_end(items, gen_dirt_pass(&item_dirt, items->at, end), err));
        }
    }
    TRY(gen_writer_close(sales, month.index % 2 == 0 ? GEN_END_BARE : GEN_END_NEWLINE, err));
    return gen_writer_close(items, month.index % 3 == 0 ? GEN_END_BARE : GEN_END_NEWLINE, err);
}

/* A dimension table: the same for every seed and scale. Two stores share a name on purpose. */
struct fixed_table {
    const char *name;
    struct text bytes;
    uint64_t record_count;
};

static const struct fixed_table fixed_tables[] = {
    {"stores/stores.csv",
     TEXT_INIT(
         "store_id,store_name,street,postal_code,city,state,latitude,longitude\n"
         "1,Mill & Bean @ Harbour Gate,Quay Road 5,10440,Harbour "
         "Gate,Westmark,-34.603712,-58.381601\n"
         "2,Mill & Bean @ Old Foundry,Anvil Lane 12b,10871,Old Foundry,Eastmark,-34.61,-58.3702\n"
         "3,Mill & Bean @ Lindenhof,Linden Street "
         "31,11203,Lindenhof,Southmark,-34.588045,-58.4101\n"
         "4,Mill & Bean @ Kite Hill,Kite Row 8/2,11950,Kite Hill,Southmark,-34.572,-58.455317\n"
         "5,Mill & Bean @ Platform Nine,Station Square 1,12016,Platform "
         "Nine,Southmark,-34.5917,-58.37461\n"
         "6,Mill & Bean @ Fern Market,Market Street 77,12388,Fern "
         "Market,Eastmark,-34.620333,-58.44\n"
         "7,Mill & Bean @ Upper Reach,Reach Road 140,13001,Upper "
         "Reach,Eastmark,-34.5509,-58.471225\n"
         "8,Mill & Bean @ São Bento,Rua Nova 9,13570,São Bento,Westmark,-34.641,-58.5023\n"
         "9,\"Mill & Bean @ Dock 8, North\",Dock Road 3,14022,Dock "
         "8,Southmark,-34.612404,-58.3611\n"
         "10,Mill & Bean @ Kite Hill,Windmill Path 2,14999,Kite Hill,Eastmark,-34.575,-58.458\n"),
     STORE_COUNT},
    {"menu_items/menu_items.csv",
     TEXT_INIT("item_id,item_name,category,price,is_seasonal,available_from,available_to\n"
               "1,Ristretto,coffee,5.5,False,,\n"
               "2,Filter Coffee,coffee,7.0,False,,\n"
               "3,Cortado,coffee,8.0,False,,\n"
               "4,Café au Lait,coffee,8.0,False,,\n"
               "5,Oat Macchiato,coffee,9.0,False,,\n"
               "6,Cinnamon Mocha,coffee,9.5,False,,\n"
               "7,Rooibos,tea,8.5,False,,\n"
               "8,Ginger Chai,tea,10.5,False,,\n"),
     ITEM_COUNT},
};

static status write_fixed(struct coffee *coffee, const struct fixed_table *table, struct error *err)
{
    struct gen_writer *writer = &coffee->users;
    TRY(gen_writer_open(writer, coffee->run, table->name, err));
    TRY(gen_writer_take(writer, gen_put_text(writer->at, table->bytes), err));
    writer->record_count = table->record_count;
    return gen_writer_close(writer, GEN_END_NEWLINE, err);
}

static status write_all(struct coffee *coffee, struct error *err)
{
    for (uint32_t i = 0; i < sizeof fixed_tables / sizeof fixed_tables[0]; i++) {
        TRY(write_fixed(coffee, &fixed_tables[i], err));
    }
    for (uint32_t index = 0; index < MONTH_COUNT; index++) {
        TRY(write_users(coffee, month_at(index), err));
        TRY(write_sales(coffee, month_at(index), err));
    }
    return STATUS_OK;
}

status gen_coffee_write(struct gen_run *run, struct error *err)
{
    struct coffee coffee = {
        .run = run,
        .sale_count = gen_run_count(run, SALE_COUNT / MONTH_COUNT, 8),
        .user_count = gen_run_count(run, USER_COUNT / MONTH_COUNT, 8),
    };
    status result = write_all(&coffee, err);
    gen_writer_abandon(&coffee.users);
    gen_writer_abandon(&coffee.sales);
    gen_writer_abandon(&coffee.items);
    return result;
}
