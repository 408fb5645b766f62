/* SPDX-License-Identifier: Apache-2.0 */
/* gen_movies.c - films, credits and ratings.
 *
 * A film is a number; everything about it follows from the seed and that number, so the three
 * tables agree without a table in memory. Low numbers are popular. Every 97th film is produced by
 * Argentina, and these take turns in partners and years, so that the questions about Argentina have
 * answers even in small data.
 */
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "gen/gen_dirt.h"
#include "gen/gen_put.h"
#include "gen/gen_run.h"
#include "gen/gen_words.h"
#include "gen/gen_writer.h"

enum {
    FILM_COUNT = 45000,
    RATING_COUNT = 26000000,
    ARGENTINA_EVERY = 97,
    ARGENTINA_FIRST = 13,
    STREAM_FILMS = 1,
    STREAM_CREDITS,
    STREAM_RATINGS,
    STREAM_DIRT,
};

struct movies {
    struct gen_run *run;
    uint32_t film_count;
    uint32_t person_count;
    uint32_t argentine_count; /* Actors of Argentina's films. */
    uint64_t film_seed;
    struct gen_writer writer;
    char *scratch; /* Owned: GEN_RECORD_BYTES, where a field is composed before it is escaped. */
};

struct code_name {
    struct text code;
    struct text name;
};

#define CODE(code, name)                                                                           \
    {                                                                                              \
        {code, sizeof(code) - 1},                                                                  \
        {                                                                                          \
            name, sizeof(name) - 1                                                                 \
        }                                                                                          \
    }
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Argentina is not among them: it has its own films. */
static const struct code_name countries[] = {
    CODE("US", "United States of America"),
    CODE("GB", "United Kingdom"),
    CODE("FR", "France"),
    CODE("DE", "Germany"),
    CODE("CA", "Canada"),
    CODE("IT", "Italy"),
    CODE("JP", "Japan"),
    CODE("ES", "Spain"),
    CODE("RU", "Russia"),
    CODE("IN", "India"),
    CODE("HK", "Hong Kong"),
    CODE("SE", "Sweden"),
    CODE("AU", "Australia"),
    CODE("KR", "South Korea"),
    CODE("BR", "Brazil"),
    CODE("MX", "Mexico"),
    CODE("CI", "Cote D'Ivoire"),
    CODE("LA", "Lao People's Democratic Republic"),
};
static const struct code_name argentina = CODE("AR", "Argentina");
static const struct code_name spain = CODE("ES", "Spain");

static const struct code_name languages[] = {
    CODE("en", "English"),  CODE("fr", "Français"), CODE("es", "Español"), CODE("de", "Deutsch"),
    CODE("it", "Italiano"), CODE("ja", "日本語"),   CODE("ru", "Pусский"), CODE("zh", "普通话"),
    CODE("hi", "हिन्दी"),    CODE("sv", "svenska"),  CODE("ar", "العربية"), CODE("xx", ""),
};

static const struct code_name genres[] = {
    CODE("18", "Drama"),      CODE("35", "Comedy"),
    CODE("53", "Thriller"),   CODE("10749", "Romance"),
    CODE("28", "Action"),     CODE("27", "Horror"),
    CODE("80", "Crime"),      CODE("99", "Documentary"),
    CODE("12", "Adventure"),  CODE("878", "Science Fiction"),
    CODE("10751", "Family"),  CODE("9648", "Mystery"),
    CODE("14", "Fantasy"),    CODE("16", "Animation"),
    CODE("10769", "Foreign"),
};

static const struct code_name jobs[] = {
    CODE("Directing", "Director"),       CODE("Writing", "Screenplay"),
    CODE("Production", "Producer"),      CODE("Camera", "Director of Photography"),
    CODE("Editing", "Editor"),           CODE("Sound", "Original Music Composer"),
    CODE("Art", "Production Design"),    CODE("Costume & Make-Up", "Costume Design"),
    CODE("Visual Effects", "Animation"), CODE("Crew", "Stunts"),
};

static const struct gen_columns film_columns = {
    .required = GEN_FIELD(2) | GEN_FIELD(3) | GEN_FIELD(5) | GEN_FIELD(9) | GEN_FIELD(13) |
                GEN_FIELD(14) | GEN_FIELD(15) | GEN_FIELD(17) | GEN_FIELD(20),
    .numbers = GEN_FIELD(2) | GEN_FIELD(5) | GEN_FIELD(15),
    .dates = GEN_FIELD(14),
    .texts = GEN_FIELD(9) | GEN_FIELD(20),
    .lists = GEN_FIELD(3) | GEN_FIELD(13) | GEN_FIELD(17),
};
static const struct gen_columns credit_columns = {
    .required = GEN_FIELD(0) | GEN_FIELD(2),
    .numbers = GEN_FIELD(2),
    .texts = GEN_FIELD(0) | GEN_FIELD(1),
    .lists = GEN_FIELD(0),
};
static const struct gen_columns rating_columns = {
    .required = GEN_FIELD(1) | GEN_FIELD(2),
    .numbers = GEN_FIELD(1) | GEN_FIELD(2) | GEN_FIELD(3),
    .texts = GEN_FIELD(1) | GEN_FIELD(3),
};

/* Of four neighbouring ids one belongs to no film. */
static uint64_t film_id(const struct movies *movies, uint32_t film)
{
    return (uint64_t)film * 4 + 2 + hash_combine(movies->film_seed, film) % 3;
}

static uint64_t no_film_id(uint32_t film)
{
    return (uint64_t)film * 4 + 5;
}

static bool film_is_argentine(uint32_t film)
{
    return film % ARGENTINA_EVERY == ARGENTINA_FIRST;
}

static struct random film_random(const struct movies *movies, uint32_t film, uint64_t stream)
{
    return (struct random){.state = hash_combine(movies->film_seed + stream, film)};
}

/* Films produced by Argentina come in six kinds, in turn. */
struct argentine_kind {
    uint32_t first_year;
    uint32_t last_year;
    bool with_spain;
    uint32_t other_count;
};

static const struct argentine_kind argentine_kinds[] = {
    {2000, 2009, true, 0},  {2001, 2017, false, 0}, {2000, 2009, true, 1},
    {1940, 1999, false, 0}, {2004, 2016, false, 2}, {1985, 2017, true, 0},
};

static const struct argentine_kind *film_kind(uint32_t film)
{
    return &argentine_kinds[film / ARGENTINA_EVERY % COUNT(argentine_kinds)];
}

/* One film in eight is rated by nobody; not so the first of each Argentine kind. */
static bool film_is_rated(const struct movies *movies, uint32_t film)
{
    return film < ARGENTINA_EVERY * COUNT(argentine_kinds) ||
           hash_combine(movies->film_seed ^ 7, film) % 8 != 0;
}

/* [{'id': 18, 'name': 'Drama'}]: the key and whether the code is a number differ between lists. */
static char *put_entry(char *at, struct text key, const struct code_name *entry, bool is_number)
{
    if (at[-1] != '[') at = GEN_PUT(at, ", ");
    at = GEN_PUT(at, "{'");
    at = gen_put_text(at, key);
    at = GEN_PUT(at, "': ");
    at = is_number ? gen_put_text(at, entry->code)
                   : gen_put_python(at, entry->code.bytes, entry->code.size);
    at = GEN_PUT(at, ", 'name': ");
    at = gen_put_python(at, entry->name.bytes, entry->name.size);
    return gen_put_char(at, '}');
}

static char *put_genres(char *at, struct random *random)
{
    uint32_t count = random_below(random, 5);
    uint32_t genre = gen_skewed(random, COUNT(genres), 1);
    at = gen_put_char(at, '[');
    for (uint32_t i = 0; i < count; i++) {
        at = put_entry(at, TEXT_LITERAL("id"), &genres[genre], true);
        genre = (genre + 1 + random_below(random, 3)) % COUNT(genres);
    }
    return gen_put_char(at, ']');
}

static char *put_countries(char *at, struct random *random, uint32_t film)
{
    struct text key = TEXT_LITERAL("iso_3166_1");
    uint32_t other_count = random_below(random, 8) == 0 ? 0 : 1 + random_below(random, 5) / 4;
    if (gen_chance(random, 12)) other_count += 2;

    at = gen_put_char(at, '[');
    if (film_is_argentine(film)) {
        const struct argentine_kind *kind = film_kind(film);
        other_count = kind->other_count;
        /* No query may depend on which of the two comes first. */
        bool spain_first = kind->with_spain && gen_chance(random, 2);
        if (spain_first) at = put_entry(at, key, &spain, false);
        at = put_entry(at, key, &argentina, false);
        if (kind->with_spain && !spain_first) at = put_entry(at, key, &spain, false);
    }
    /* Half of all films come from the first country, and speak the first language. */
    uint32_t country = gen_chance(random, 2) ? 0 : gen_skewed(random, COUNT(countries), 0);
    for (uint32_t i = 0; i < other_count; i++) {
        at = put_entry(at, key, &countries[country], false);
        country = (country + 1 + random_below(random, 4)) % COUNT(countries);
    }
    return gen_put_char(at, ']');
}

static char *put_languages(char *at, struct random *random, uint32_t first)
{
    uint32_t count = gen_chance(random, 12) ? 0 : 1 + gen_skewed(random, 4, 0);
    at = gen_put_char(at, '[');
    for (uint32_t i = 0; i < count; i++) {
        at = put_entry(at, TEXT_LITERAL("iso_639_1"), &languages[first], false);
        first = (first + 1 + random_below(random, 5)) % COUNT(languages);
    }
    return gen_put_char(at, ']');
}

static char *put_companies(char *at, struct random *random)
{
    uint32_t count = gen_skewed(random, 5, 1);
    at = gen_put_char(at, '[');
    for (uint32_t i = 0; i < count; i++) {
        uint32_t company = random_below(random, words_count(WORDS_COMPANY));
        struct text name = words_at(WORDS_COMPANY, company);
        if (i > 0) at = GEN_PUT(at, ", ");
        at = GEN_PUT(at, "{'name': ");
        at = gen_put_python(at, name.bytes, name.size);
        at = GEN_PUT(at, ", 'id': ");
        at = gen_put_u64(at, company * 37 + 3);
        at = gen_put_char(at, '}');
    }
    return gen_put_char(at, ']');
}

/* "/" 27 letters or digits ".jpg", as image paths are. */
static char *put_image(char *at, struct random *random)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Qz";
    at = gen_put_char(at, '/');
    for (uint32_t third = 0; third < 3; third++) {
        uint64_t bits = random_u64(random);
        for (uint32_t i = 0; i < 9; i++) {
            *at++ = letters[bits & 63];
            bits >>= 6;
        }
    }
    return GEN_PUT(at, ".jpg");
}

static char *put_collection(char *at, struct random *random)
{
    char title[256];
    char *end = words_put_title(title, random, WORDS_ANYWHERE);
    end = GEN_PUT(end, " Collection");
    at = GEN_PUT(at, "{'id': ");
    at = gen_put_u64(at, 1000 + random_below(random, 90000));
    at = GEN_PUT(at, ", 'name': ");
    at = gen_put_python(at, title, (size_t)(end - title));
    at = GEN_PUT(at, ", 'poster_path': '");
    at = put_image(at, random);
    at = GEN_PUT(at, "', 'backdrop_path': ");
    if (gen_chance(random, 3)) return GEN_PUT(at, "None}");
    at = gen_put_char(at, '\'');
    at = put_image(at, random);
    return GEN_PUT(at, "'}");
}

/* What was composed in the scratch up to `end` becomes a field, with the comma behind it. */
static char *take_scratch(char *at, const struct movies *movies, const char *end)
{
    at = gen_put_csv(at, movies->scratch, (size_t)(end - movies->scratch));
    return gen_put_char(at, ',');
}

struct money {
    uint64_t budget;
    uint64_t revenue;
};

/* Most films tell neither; what is told is round more often than not. */
static struct money film_money(struct random *random)
{
    struct money money = {0};
    uint32_t told = random_below(random, 16);
    uint64_t size = UINT64_C(1000) << random_below(random, 17);
    if (told < 4) money.budget = size + size / 100 * random_below(random, 100);
    if (told >= 2 && told <= 4) {
        uint64_t base = money.budget == 0 ? size : money.budget;
        money.revenue = base / 64 * (1 + random_below(random, 400));
        money.revenue += random_below(random, 1000);
    }
    if (gen_chance(random, 500)) money.budget = 1 + random_below(random, 30);
    return money;
}

/* One film while its record is written: what more than one column needs. */
struct film {
    uint32_t number;
    uint32_t language;
    struct money money;
    struct gen_date date;
    char title[256];
    size_t title_size;
    struct random random;
};

static struct film film_make(const struct movies *movies, uint32_t number)
{
    struct film film = {
        .number = number,
        .random = film_random(movies, number, STREAM_FILMS),
    };
    struct random *random = &film.random;
    words_region region = WORDS_ANYWHERE;
    uint32_t first_year = gen_chance(random, 4) ? 1915 : 1990;
    uint32_t last_year = 2017;
    if (!gen_chance(random, 2)) film.language = gen_skewed(random, COUNT(languages), 0);
    if (film_is_argentine(number)) {
        region = WORDS_ARGENTINA;
        first_year = film_kind(number)->first_year;
        last_year = film_kind(number)->last_year;
        film.language = 2;
    }
    film.date = gen_date_between(random, first_year, last_year);
    film.money = film_money(random);
    film.title_size = (size_t)(words_put_title(film.title, random, region) - film.title);
    return film;
}

/* adult to original_title. */
static char *put_film_front(char *at, const struct movies *movies, struct film *film)
{
    struct random *random = &film->random;
    at = gen_chance(random, 3000) ? GEN_PUT(at, "True,") : GEN_PUT(at, "False,");
    if (gen_chance(random, 10)) {
        at = take_scratch(at, movies, put_collection(movies->scratch, random));
    } else {
        at = gen_put_char(at, ',');
    }
    at = gen_put_u64(at, film->money.budget);
    at = gen_put_char(at, ',');
    at = take_scratch(at, movies, put_genres(movies->scratch, random));
    if (gen_chance(random, 7)) {
        at = GEN_PUT(at, "http://www.film-");
        at = gen_put_base36(at, random_u64(random), 8);
        at = GEN_PUT(at, ".example/");
    }
    at = gen_put_char(at, ',');
    at = gen_put_u64(at, film_id(movies, film->number));
    at = GEN_PUT(at, ",tt0");
    at = gen_put_padded(at, 100000 + film->number, 6);
    at = gen_put_char(at, ',');
    at = gen_put_text(at, languages[film->language].code);
    at = gen_put_char(at, ',');
    at = gen_put_csv(at, film->title, film->title_size);
    return gen_put_char(at, ',');
}

static char *put_overview(char *at, const struct movies *movies, struct random *random)
{
    static const words_tone tones[] = {
        WORDS_POSITIVE, WORDS_POSITIVE, WORDS_POSITIVE, WORDS_NEGATIVE, WORDS_NEGATIVE,
        WORDS_NEGATIVE, WORDS_NEUTRAL,  WORDS_NEUTRAL,  WORDS_NEUTRAL,  WORDS_NEUTRAL,
    };
    words_tone tone = tones[random_below(random, COUNT(tones))];
    if (gen_chance(random, 250)) return gen_put_char(at, ',');
    if (gen_chance(random, 900)) return GEN_PUT(at, " ,");
    return take_scratch(at, movies, words_put_overview(movies->scratch, random, tone));
}

/* overview to release_date. */
static char *put_film_middle(char *at, const struct movies *movies, struct film *film)
{
    struct random *random = &film->random;
    at = put_overview(at, movies, random);
    if (gen_chance(random, 300)) {
        at = gen_put_u64(at, 1 + random_below(random, 9));
        at = GEN_PUT(at, ".2e-05,");
    } else {
        at = gen_put_u64(at, gen_skewed(random, 300, 3));
        at = gen_put_char(at, '.');
        at = gen_put_padded(at, random_below(random, 1000000), 6);
        at = gen_put_char(at, ',');
    }
    if (!gen_chance(random, 100)) at = put_image(at, random);
    at = gen_put_char(at, ',');
    at = take_scratch(at, movies, put_companies(movies->scratch, random));
    at = take_scratch(at, movies, put_countries(movies->scratch, random, film->number));
    if (!gen_chance(random, 500)) at = gen_put_date(at, film->date);
    return gen_put_char(at, ',');
}

/* revenue to vote_count. */
static char *put_film_back(char *at, const struct movies *movies, struct film *film, uint32_t copy)
{
    struct random *random = &film->random;
    at = gen_put_u64(at, film->money.revenue);
    at = gen_chance(random, 5) ? GEN_PUT(at, ".0,") : GEN_PUT(at, ",");
    at = gen_put_u64(at, gen_chance(random, 30) ? 0 : 60 + random_below(random, 90));
    at = GEN_PUT(at, ".0,");
    at = take_scratch(at, movies, put_languages(movies->scratch, random, film->language));
    at = gen_chance(random, 100) ? GEN_PUT(at, "Rumored,") : GEN_PUT(at, "Released,");
    char *tagline = movies->scratch;
    if (gen_chance(random, 2)) tagline = words_put(tagline, random, WORDS_TAGLINE);
    at = take_scratch(at, movies, tagline);
    at = gen_put_csv(at, film->title, film->title_size);
    at = GEN_PUT(at, ",False,");
    at = gen_put_u64(at, random_below(random, 10));
    at = gen_put_char(at, '.');
    at = gen_put_u64(at, random_below(random, 10));
    at = gen_put_char(at, ',');
    at = gen_put_u64(at, gen_skewed(random, 14000, 4) + copy);
    return gen_put_char(at, '\n');
}

/* `copy` is 0 but for a film that is there twice; only the votes tell copies apart. */
static char *put_film(char *at, const struct movies *movies, uint32_t number, uint32_t copy)
{
    struct film film = film_make(movies, number);
    at = put_film_front(at, movies, &film);
    at = put_film_middle(at, movies, &film);
    return put_film_back(at, movies, &film, copy);
}

static status write_films(struct movies *movies, struct error *err)
{
    struct gen_writer *writer = &movies->writer;
    struct gen_dirt dirt =
        gen_dirt_init(&film_columns, gen_run_random(movies->run, STREAM_DIRT), 2000);
    struct gen_walk walk = gen_walk_over(movies->film_count);

    TRY(gen_writer_open(writer, movies->run, "movies_metadata.csv", err));
    TRY(gen_writer_take(writer,
                        GEN_PUT(writer->at,
                                "adult,belongs_to_collection,budget,genres,homepage,id,imdb_id,"
                                "original_language,original_title,overview,popularity,poster_path,"
                                "production_companies,production_countries,release_date,revenue,"
                                "runtime,spoken_languages,status,tagline,title,video,vote_average,"
                                "vote_count\n"),
                        err));
    for (uint32_t i = 0; i < movies->film_count; i++) {
        uint32_t film = (uint32_t)gen_walk_next(&walk);
        uint32_t copy_count = hash_combine(movies->film_seed ^ 3, film) % 1500 == 0 ? 2 : 1;
        for (uint32_t copy = 0; copy < copy_count; copy++) {
            char *end = put_film(writer->at, movies, film, copy);
            TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
        }
    }
    return gen_writer_close(writer, GEN_END_NEWLINE, err);
}

/* Lengths of real lists: sixteenths of all films, the last one long. */
static const uint8_t cast_lengths[16] = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 19, 0};
static const uint8_t crew_lengths[16] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 10, 12, 15, 21, 0};

static uint32_t list_length(struct random *random, const uint8_t *lengths)
{
    uint32_t sixteenth = random_below(random, 16);
    if (sixteenth < 15) return lengths[sixteenth];
    return 24 + gen_skewed(random, 150, 4);
}

static char *put_person_name(char *at, uint64_t person, words_region region)
{
    char name[128];
    char *end = words_put_person(name, person, region);
    return gen_put_python(at, name, (size_t)(end - name));
}

static char *put_profile(char *at, struct random *random)
{
    at = GEN_PUT(at, ", 'profile_path': ");
    if (gen_chance(random, 3)) return GEN_PUT(at, "None}");
    at = gen_put_char(at, '\'');
    at = put_image(at, random);
    return GEN_PUT(at, "'}");
}

static char *put_credit_id(char *at, struct random *random)
{
    at = GEN_PUT(at, "'credit_id': '52");
    at = gen_put_hex(at, random_u64(random), 8);
    at = gen_put_hex(at, random_u64(random), 3);
    return gen_put_char(at, '\'');
}

static char *put_cast(char *at, const struct movies *movies, struct random *random, uint32_t film)
{
    words_region region = film_is_argentine(film) ? WORDS_ARGENTINA : WORDS_ANYWHERE;
    uint32_t people = region == WORDS_ARGENTINA ? movies->argentine_count : movies->person_count;
    uint32_t flat_bits = region == WORDS_ARGENTINA ? 5 : 8;
    uint32_t length = list_length(random, cast_lengths);
    uint32_t person = 0;
    if (region == WORDS_ARGENTINA) length += 3;

    at = gen_put_char(at, '[');
    for (uint32_t i = 0; i < length; i++) {
        /* Now and then an actor plays two parts and is listed twice. */
        if (i == 0 || !gen_chance(random, 80)) person = gen_skewed(random, people, flat_bits);
        struct text part =
            words_at(WORDS_CHARACTER, random_below(random, words_count(WORDS_CHARACTER)));
        if (i > 0) at = GEN_PUT(at, ", ");
        at = GEN_PUT(at, "{'cast_id': ");
        at = gen_put_u64(at, i + random_below(random, 20));
        at = GEN_PUT(at, ", 'character': ");
        at = gen_put_python(at, part.bytes, part.size);
        at = GEN_PUT(at, ", ");
        at = put_credit_id(at, random);
        at = GEN_PUT(at, ", 'gender': ");
        at = gen_put_u64(at, random_below(random, 3));
        if (gen_chance(random, 400)) {
            at = GEN_PUT(at, ", 'extra': {'verified': True, 'hidden': False, 'aliases': "
                             "['name', \"the 'name'\", None, []], 'rank': -1.5}");
        }
        at = GEN_PUT(at, ", 'id': ");
        at = gen_put_u64(at, (uint64_t)person * 3 + 1);
        at = GEN_PUT(at, ", 'name': ");
        at = put_person_name(at, person, region);
        at = GEN_PUT(at, ", 'order': ");
        at = gen_put_u64(at, i);
        at = put_profile(at, random);
    }
    return gen_put_char(at, ']');
}

static char *put_crew(char *at, const struct movies *movies, struct random *random)
{
    uint32_t length = list_length(random, crew_lengths);
    at = gen_put_char(at, '[');
    for (uint32_t i = 0; i < length; i++) {
        uint32_t person = gen_skewed(random, movies->person_count, 6);
        const struct code_name *job = &jobs[i < 3 ? i : random_below(random, COUNT(jobs))];
        at = i > 0 ? GEN_PUT(at, ", {") : GEN_PUT(at, "{");
        at = put_credit_id(at, random);
        at = GEN_PUT(at, ", 'department': '");
        at = gen_put_text(at, job->code);
        at = GEN_PUT(at, "', 'gender': ");
        at = gen_put_u64(at, random_below(random, 3));
        at = GEN_PUT(at, ", 'id': ");
        at = gen_put_u64(at, (uint64_t)person * 3 + 2);
        at = GEN_PUT(at, ", 'job': '");
        at = gen_put_text(at, job->name);
        at = GEN_PUT(at, "', 'name': ");
        at = put_person_name(at, (uint64_t)person + 10000019, WORDS_ANYWHERE);
        at = put_profile(at, random);
    }
    return gen_put_char(at, ']');
}

static char *put_credit(char *at, const struct movies *movies, uint32_t film)
{
    struct random random = film_random(movies, film, STREAM_CREDITS);
    at = take_scratch(at, movies, put_cast(movies->scratch, movies, &random, film));
    at = take_scratch(at, movies, put_crew(movies->scratch, movies, &random));
    /* A few credits belong to no film, and so a few films have none. */
    bool is_lost = !film_is_argentine(film) && gen_chance(&random, 200);
    at = gen_put_u64(at, is_lost ? no_film_id(film) : film_id(movies, film));
    return gen_put_char(at, '\n');
}

static status write_credits(struct movies *movies, struct error *err)
{
    struct gen_writer *writer = &movies->writer;
    struct gen_dirt dirt =
        gen_dirt_init(&credit_columns, gen_run_random(movies->run, STREAM_DIRT + 1), 2000);
    struct gen_walk walk = gen_walk_over(movies->film_count);

    TRY(gen_writer_open(writer, movies->run, "credits.csv", err));
    TRY(gen_writer_take(writer,
                        GEN_PUT(writer->at, "\xef\xbb\xbf"
                                            "cast,crew,id\n"),
                        err));
    for (uint32_t i = 0; i < movies->film_count; i++) {
        char *end = put_credit(writer->at, movies, (uint32_t)gen_walk_next(&walk));
        TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
    }
    return gen_writer_close(writer, GEN_END_NEWLINE, err);
}

struct rater {
    char prefix[24]; /* "userId," */
    size_t prefix_size;
    uint64_t rating_count; /* Still to come. */
    uint64_t time;
};

static struct rater rater_next(struct random *random, uint64_t user)
{
    struct rater rater = {.rating_count = 1 + gen_skewed(random, 512, 3)};
    if (gen_chance(random, 4096)) rater.rating_count *= 20;
    char *end = gen_put_u64(rater.prefix, user);
    end = gen_put_char(end, ',');
    rater.prefix_size = (size_t)(end - rater.prefix);
    rater.time = 825000000 + random_below(random, 675000000);
    return rater;
}

/* Half stars: a bell around 3.5, moved by what the film is worth. */
static uint32_t rating_half_stars(uint64_t bits, uint64_t film_hash)
{
    static const uint8_t bell[16] = {1, 3, 4, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 10};
    uint32_t half_stars = bell[bits & 15] + (uint32_t)(film_hash >> 60) % 5;
    if (half_stars < 3) return 1;
    return half_stars - 2 > 10 ? 10 : half_stars - 2;
}

static char *put_rating(char *at, const struct movies *movies, struct random *random,
                        struct rater *rater)
{
    static const char stars[] = "0.00.51.01.52.02.53.03.54.04.55.0";
    uint32_t film = gen_skewed(random, movies->film_count, 6);
    uint64_t bits = random_u64(random);
    uint64_t film_hash = hash_combine(movies->film_seed, film);
    bool is_lost = !film_is_rated(movies, film) || (bits >> 8) % 32 == 0;

    at = gen_put_bytes(at, rater->prefix, rater->prefix_size);
    at = gen_put_u64(at, is_lost ? no_film_id(film) : film_id(movies, film));
    at = gen_put_char(at, ',');
    at = gen_put_bytes(at, stars + (size_t)rating_half_stars(bits, film_hash) * 3, 3);
    at = gen_put_char(at, ',');
    rater->time += (bits >> 32) % 64;
    at = gen_put_u64(at, rater->time);
    return GEN_PUT(at, "\r\n");
}

static status write_ratings(struct movies *movies, struct error *err)
{
    struct gen_writer *writer = &movies->writer;
    struct random random = gen_run_random(movies->run, STREAM_RATINGS);
    struct gen_dirt dirt =
        gen_dirt_init(&rating_columns, gen_run_random(movies->run, STREAM_DIRT + 2), 20000);
    uint64_t rating_count = gen_run_count(movies->run, RATING_COUNT, 50);
    uint64_t user = 0;
    struct rater rater = {0};

    TRY(gen_writer_open(writer, movies->run, "ratings.csv", err));
    TRY(gen_writer_take(writer, GEN_PUT(writer->at, "userId,movieId,rating,timestamp\r\n"), err));
    for (uint64_t i = 0; i < rating_count; i++) {
        if (rater.rating_count == 0) rater = rater_next(&random, ++user);
        rater.rating_count--;
        char *end = put_rating(writer->at, movies, &random, &rater);
        TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
    }
    return gen_writer_close(writer, GEN_END_NEWLINE, err);
}

static status write_all(struct movies *movies, struct error *err)
{
    TRY(write_films(movies, err));
    TRY(write_credits(movies, err));
    return write_ratings(movies, err);
}

status gen_movies_write(struct gen_run *run, struct error *err)
{
    struct movies movies = {
        .run = run,
        .film_count = (uint32_t)gen_run_count(run, FILM_COUNT, 5),
        .person_count = (uint32_t)gen_run_count(run, 200000, 50),
        .argentine_count = (uint32_t)gen_run_count(run, 2000, 40),
        .film_seed = gen_run_random(run, STREAM_FILMS).state,
        .scratch = memory_alloc(NULL, GEN_RECORD_BYTES),
    };
    status result = movies.scratch == NULL
                        ? error_set(err, STATUS_MEMORY, "gen: no memory to compose records")
                        : write_all(&movies, err);
    gen_writer_abandon(&movies.writer);
    memory_free(NULL, movies.scratch, GEN_RECORD_BYTES);
    return result;
}
