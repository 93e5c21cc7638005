/*
 * memhost.h: a memory plugin for memhost in C, without a C library.
 *
 * abi/ABI.md is the contract; this file is what every plugin needs to keep it, in one header: the exports and imports of
 * mh1, an arena, a JSON reader and writer, answers and errors, requests to a backend, state, native ids, and the text
 * for the prompt. It is also the reference for other languages: each part names the section of ABI.md that it follows.
 *
 *     #include "memhost.h"
 *
 *     MH_OPERATION(health) {
 *         mh_open(out, '{');
 *         mh_put_text(out, "status", mh_s("ok"));
 *         ...
 *         mh_close(out, '}');
 *     }
 *
 *     clang --target=wasm32 -O2 -mbulk-memory -nostdlib -Wl,--no-entry -Wl,--stack-first -o plugin.wasm plugin.c
 *     memhost pack plugin.wasm --manifest manifest.json
 *
 * An operation writes one JSON value to out, or calls mh_fail. C has no exceptions: a function that returns bool has
 * called mh_fail when it returns false, and the operation returns at once. Everything that is allocated lives until the
 * next call begins, so nothing is ever freed.
 *
 * Include it in one C file. On any other target than wasm the imports are ordinary functions, mh_import_*, that the
 * program defines: so operations can be tested natively, with sanitizers.
 */
#ifndef MEMHOST_H
#define MEMHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MH_FN static __attribute__((unused))

/* ---- 1. Imports (ABI.md, section 5) ---------------------------------------------------------------------------- */

#ifdef __wasm__
#define MH_IMPORT(name) __attribute__((import_module("memhost"), import_name(#name)))
#define MH_EXPORT(name) __attribute__((export_name(#name)))
#else
#define MH_IMPORT(name)
#define MH_EXPORT(name)
#include <stdlib.h>
#endif

/* A module has only the imports that it uses, and what it imports is what it may do. */
MH_IMPORT(pull) uint32_t mh_import_pull(void *at, uint32_t len);
MH_IMPORT(config) uint64_t mh_import_config(void);
MH_IMPORT(deadline) int64_t mh_import_deadline(void);
MH_IMPORT(log) void mh_import_log(int32_t level, const void *text, uint32_t len);
MH_IMPORT(tokens_count) int64_t mh_import_tokens_count(const void *text, uint32_t len);
MH_IMPORT(tokens_fit) uint64_t mh_import_tokens_fit(const void *text, uint32_t len, int32_t max);
MH_IMPORT(state_get) uint64_t mh_import_state_get(const void *key, uint32_t len);
MH_IMPORT(state_put)
uint64_t mh_import_state_put(const void *key, uint32_t key_len, const void *value, uint32_t len, int64_t expected);
MH_IMPORT(state_delete) uint64_t mh_import_state_delete(const void *prefix, uint32_t len);
MH_IMPORT(state_list) uint64_t mh_import_state_list(const void *request, uint32_t len);
MH_IMPORT(state_append)
uint64_t mh_import_state_append(const void *log, uint32_t log_len, const void *value, uint32_t len);
MH_IMPORT(state_read) uint64_t mh_import_state_read(const void *request, uint32_t len);
MH_IMPORT(http_send)
uint64_t mh_import_http_send(const void *head, uint32_t head_len, const void *body, uint32_t len);

/* ---- 2. Texts and the arena ------------------------------------------------------------------------------------ */

/* A text: len bytes, which may hold U+0000. It does not end with a zero byte. */
typedef struct {
    const char *at;
    size_t len;
} mh_str;

/* The compiler may turn loops into calls of these four. */
#ifdef __wasm__
__attribute__((weak, no_builtin)) void *memcpy(void *to, const void *from, size_t n) {
    for (size_t i = 0; i < n; i++) ((char *)to)[i] = ((const char *)from)[i];
    return to;
}
__attribute__((weak, no_builtin)) void *memset(void *to, int c, size_t n) {
    for (size_t i = 0; i < n; i++) ((char *)to)[i] = (char)c;
    return to;
}
__attribute__((weak, no_builtin)) int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i]) return x[i] - y[i];
    return 0;
}
__attribute__((weak, no_builtin)) size_t strlen(const char *s) {
    size_t n = 0;
    while (s[n]) n++;
    return n;
}
#else
#include <string.h>
#endif

#define MH_NONE ((mh_str){0})

/* mh_s is the text of a C string. */
MH_FN mh_str mh_s(const char *s) { return (mh_str){s, s ? strlen(s) : 0}; }

MH_FN bool mh_equal(mh_str a, mh_str b) { return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0); }
MH_FN bool mh_is(mh_str a, const char *b) { return mh_equal(a, mh_s(b)); }

/* mh_crash traps: the guest itself is broken, or has no memory left. The host drops the instance. */
MH_FN _Noreturn void mh_crash(const char *why) {
    mh_import_log(3, why, (uint32_t)strlen(why));
    __builtin_trap();
}

/*
 * The arena. mh_alloc never fails and never gives NULL: without memory it traps, and the host's error names the limit
 * (128 MiB, ABI.md, section 7). mh_arena_reset frees everything; mh_buffer does it when a call begins.
 */
#ifdef __wasm__
extern unsigned char __heap_base;
static uintptr_t mh_arena_at;

MH_FN void *mh_alloc(size_t size) {
    if (!mh_arena_at) mh_arena_at = (uintptr_t)&__heap_base;
    uintptr_t at = (mh_arena_at + 15) & ~(uintptr_t)15;
    size_t have = __builtin_wasm_memory_size(0) << 16;
    if (size > UINT32_MAX - at) mh_crash("memhost.h: out of memory");
    if (at + size > have && __builtin_wasm_memory_grow(0, (at + size - have + 65535) >> 16) == (size_t)-1)
        mh_crash("memhost.h: out of memory");
    mh_arena_at = at + size;
    return (void *)at;
}
MH_FN void mh_arena_reset(void) { mh_arena_at = 0; }
#else
/* Natively each allocation is one of malloc's, so that a sanitizer sees a byte too many. */
typedef struct mh_chunk {
    struct mh_chunk *next;
    max_align_t data[];
} mh_chunk;
static mh_chunk *mh_chunks;

MH_FN void *mh_alloc(size_t size) {
    mh_chunk *c = malloc(sizeof *c + size);
    if (!c) mh_crash("memhost.h: out of memory");
    c->next = mh_chunks;
    mh_chunks = c;
    return c->data;
}
MH_FN void mh_arena_reset(void) {
    while (mh_chunks) {
        mh_chunk *c = mh_chunks;
        mh_chunks = c->next;
        free(c);
    }
}
#endif

/* mh_utf8 is the length of the character that begins at s[at], 0 where it is not UTF-8. *rune is the character. */
MH_FN size_t mh_utf8(mh_str s, size_t at, uint32_t *rune) {
    const unsigned char *p = (const unsigned char *)s.at + at;
    size_t left = s.len - at, n;
    uint32_t r, least;
    if (left == 0) return 0;
    if (p[0] < 0x80) return *rune = p[0], 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) n = 2, r = p[0] & 0x1f, least = 0x80;
    else if ((p[0] & 0xf0) == 0xe0) n = 3, r = p[0] & 0x0f, least = 0x800;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4) n = 4, r = p[0] & 0x07, least = 0x10000;
    else return 0;
    if (left < n) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        r = r << 6 | (p[i] & 0x3f);
    }
    if (r < least || r > 0x10ffff || (r >= 0xd800 && r <= 0xdfff)) return 0;
    return *rune = r, n;
}

/* ---- 3. The JSON writer ---------------------------------------------------------------------------------------- */

/*
 * A writer makes one JSON value and sets its commas. The zero value is an empty one.
 *
 *     mh_writer w = {0};
 *     mh_open(&w, '{');
 *     mh_put_text(&w, "query", text);
 *     mh_key(&w, "ids"), mh_open(&w, '['), mh_text(&w, id), mh_close(&w, ']');
 *     mh_close(&w, '}');
 *     mh_str json = mh_json_of(&w);
 */
typedef struct {
    char *at;
    size_t len, cap;
    bool comma; /* before the next value or key */
} mh_writer;

MH_FN void mh_add(mh_writer *w, mh_str s) { /* bytes as they are, without a comma */
    if (s.len > w->cap - w->len) {
        size_t cap = w->cap * 2 > w->len + s.len ? w->cap * 2 : w->len + s.len + 256;
        char *to = mh_alloc(cap);
        if (w->len) memcpy(to, w->at, w->len);
        w->at = to, w->cap = cap;
    }
    if (s.len) memcpy(w->at + w->len, s.at, s.len);
    w->len += s.len;
}
MH_FN void mh_add_byte(mh_writer *w, char c) { mh_add(w, (mh_str){&c, 1}); }
MH_FN mh_str mh_json_of(const mh_writer *w) { return (mh_str){w->at, w->len}; }

MH_FN void mh_comma(mh_writer *w) {
    if (w->comma) mh_add_byte(w, ',');
    w->comma = true;
}
MH_FN void mh_open(mh_writer *w, char bracket) { mh_comma(w), mh_add_byte(w, bracket), w->comma = false; }
MH_FN void mh_close(mh_writer *w, char bracket) { mh_add_byte(w, bracket), w->comma = true; }

/* mh_quote adds a JSON string without a comma. What is not UTF-8 becomes U+FFFD: an answer has to be UTF-8. */
MH_FN void mh_quote(mh_writer *w, mh_str s) {
    static const char digits[] = "0123456789abcdef";
    mh_add_byte(w, '"');
    size_t from = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t rune;
        size_t n = mh_utf8(s, i, &rune);
        if (n && rune >= 0x20 && rune != '"' && rune != '\\') {
            i += n;
            continue;
        }
        mh_add(w, (mh_str){s.at + from, i - from});
        unsigned char c = (unsigned char)s.at[i];
        if (!n) mh_add(w, mh_s("\xef\xbf\xbd"));
        else if (c == '"' || c == '\\') mh_add(w, (mh_str){(char[]){'\\', (char)c}, 2});
        else if (c == '\n') mh_add(w, mh_s("\\n"));
        else mh_add(w, (mh_str){(char[]){'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]}, 6});
        from = ++i;
    }
    mh_add(w, (mh_str){s.at + from, s.len - from});
    mh_add_byte(w, '"');
}

MH_FN void mh_key_of(mh_writer *w, mh_str name) { mh_comma(w), mh_quote(w, name), mh_add_byte(w, ':'), w->comma = false; }
MH_FN void mh_key(mh_writer *w, const char *name) { mh_key_of(w, mh_s(name)); }
MH_FN void mh_text(mh_writer *w, mh_str s) { mh_comma(w), mh_quote(w, s); }
MH_FN void mh_raw(mh_writer *w, mh_str json) { mh_comma(w), mh_add(w, json); } /* a JSON value as it stands */
MH_FN void mh_bool(mh_writer *w, bool b) { mh_raw(w, mh_s(b ? "true" : "false")); }

/* mh_decimal is a number as text. */
MH_FN mh_str mh_decimal(int64_t n) {
    char *b = mh_alloc(20);
    size_t at = 20;
    uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do b[--at] = (char)('0' + u % 10);
    while (u /= 10);
    if (n < 0) b[--at] = '-';
    return (mh_str){b + at, 20 - at};
}
MH_FN void mh_int(mh_writer *w, int64_t n) { mh_raw(w, mh_decimal(n)); }

/* A member of an object: key and value. */
MH_FN void mh_put_text(mh_writer *w, const char *key, mh_str s) { mh_key(w, key), mh_text(w, s); }
MH_FN void mh_put_int(mh_writer *w, const char *key, int64_t n) { mh_key(w, key), mh_int(w, n); }
MH_FN void mh_put_bool(mh_writer *w, const char *key, bool b) { mh_key(w, key), mh_bool(w, b); }
MH_FN void mh_put_raw(mh_writer *w, const char *key, mh_str json) { mh_key(w, key), mh_raw(w, json); }
/* mh_put_one is a member that is a list of one text, or an empty one for an empty text. */
MH_FN void mh_put_one(mh_writer *w, const char *key, mh_str s) {
    mh_key(w, key), mh_open(w, '[');
    if (s.len) mh_text(w, s);
    mh_close(w, ']');
}

/* mh_texts is an object of texts, for params and headers of a request: mh_texts(2, "scope", a, "id", b). What is empty is
 * left out. */
MH_FN mh_str mh_texts(int n, ...) {
    mh_writer w = {0};
    __builtin_va_list members;
    __builtin_va_start(members, n);
    mh_open(&w, '{');
    for (int i = 0; i < n; i++) {
        const char *key = __builtin_va_arg(members, const char *);
        mh_str value = __builtin_va_arg(members, mh_str);
        if (value.len) mh_put_text(&w, key, value);
    }
    mh_close(&w, '}');
    __builtin_va_end(members);
    return mh_json_of(&w);
}

/* mh_join puts texts together: mh_join(3, a, b, c). */
MH_FN mh_str mh_join(int n, ...) {
    mh_writer w = {0};
    __builtin_va_list texts;
    __builtin_va_start(texts, n);
    for (int i = 0; i < n; i++) mh_add(&w, __builtin_va_arg(texts, mh_str));
    __builtin_va_end(texts);
    return mh_json_of(&w);
}

/* ---- 4. The JSON reader ---------------------------------------------------------------------------------------- */

typedef enum { MH_NULL, MH_BOOL, MH_NUMBER, MH_STRING, MH_ARRAY, MH_OBJECT } mh_kind;

/*
 * A JSON value. What is absent is MH_NULL, so a path is followed without looking at each step:
 *
 *     int64_t most = mh_int_or(mh_get(mh_get(body, "budget"), "max_tokens"), -1);
 *     for (const mh_json *m = mh_get(body, "messages")->first; m; m = m->next) ...
 */
typedef struct mh_json {
    mh_kind kind;
    mh_str text; /* of a string its characters; of a number or boolean its spelling, so no digit is lost */
    mh_str raw;  /* the value as it stands in the source: to pass on what a backend said */
    mh_str key;  /* in an object */
    struct mh_json *first, *next; /* its first member or element, and the one after it */
    size_t count;                 /* of members or elements */
} mh_json;

static const mh_json mh_null;

/* mh_get is a member of an object. Of two with one key it is the last, as in the host. */
MH_FN const mh_json *mh_get(const mh_json *object, const char *key) {
    const mh_json *found = &mh_null;
    if (object->kind == MH_OBJECT)
        for (const mh_json *m = object->first; m; m = m->next)
            if (mh_is(m->key, key)) found = m;
    return found;
}

MH_FN bool mh_present(const mh_json *v) { return v->kind != MH_NULL; }
MH_FN bool mh_true(const mh_json *v) { return v->kind == MH_BOOL && v->text.at[0] == 't'; }

/* mh_string is the characters of a string member, empty where it is absent or something else. */
MH_FN mh_str mh_string(const mh_json *object, const char *key) {
    const mh_json *v = mh_get(object, key);
    return v->kind == MH_STRING ? v->text : (mh_str){"", 0};
}

/* mh_int64 reads a number that is written as an integer of 64 bits, every digit of it. False: it is something else. */
MH_FN bool mh_int64(const mh_json *v, int64_t *n) {
    if (v->kind != MH_NUMBER) return false;
    size_t i = v->text.at[0] == '-';
    uint64_t u = 0, most = (uint64_t)INT64_MAX + i;
    for (; i < v->text.len; i++) {
        unsigned d = (unsigned)v->text.at[i] - '0';
        if (d > 9 || u > (most - d) / 10) return false; /* a fraction, an exponent, or too large */
        u = u * 10 + d;
    }
    *n = v->text.at[0] == '-' ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}
MH_FN int64_t mh_int_or(const mh_json *v, int64_t otherwise) {
    int64_t n;
    return mh_int64(v, &n) ? n : otherwise;
}

#define MH_MAX_DEPTH 64 /* of a document, ABI.md, section 3 */

typedef struct {
    mh_str s;
    size_t at;
} mh_parser;

MH_FN void mh_blank(mh_parser *p) {
    while (p->at < p->s.len) {
        char c = p->s.at[p->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        p->at++;
    }
}
MH_FN bool mh_take(mh_parser *p, char c) {
    mh_blank(p);
    if (p->at >= p->s.len || p->s.at[p->at] != c) return false;
    p->at++;
    return true;
}

/* mh_hex4 reads four hex digits, or gives -1. */
MH_FN int32_t mh_hex4(mh_parser *p) {
    int32_t unit = 0;
    if (p->s.len - p->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = p->s.at[p->at++], low = (char)(c | 0x20);
        int32_t d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (d < 0) return -1;
        unit = unit << 4 | d;
    }
    return unit;
}

MH_FN size_t mh_encode(uint32_t r, char *to) {
    if (r < 0x80) return to[0] = (char)r, 1;
    if (r < 0x800) return to[0] = (char)(0xc0 | r >> 6), to[1] = (char)(0x80 | (r & 0x3f)), 2;
    size_t n = r < 0x10000 ? 3 : 4;
    to[0] = (char)(n == 3 ? 0xe0 | r >> 12 : 0xf0 | r >> 18);
    for (size_t i = 1; i < n; i++) to[i] = (char)(0x80 | (r >> 6 * (n - 1 - i) & 0x3f));
    return n;
}

/* mh_parse_text reads a string behind its first quotation mark. Without an escape the text is not copied. */
MH_FN bool mh_parse_text(mh_parser *p, mh_str *text) {
    size_t from = p->at, end = from;
    bool escaped = false;
    while (end < p->s.len && p->s.at[end] != '"') {
        uint32_t rune;
        size_t n = mh_utf8(p->s, end, &rune);
        if (!n || rune < 0x20) return false;
        if (rune == '\\') escaped = true, n = 2;
        end += n;
    }
    if (end >= p->s.len) return false;
    if (!escaped) {
        *text = (mh_str){p->s.at + from, end - from};
        p->at = end + 1;
        return true;
    }
    char *to = mh_alloc(end - from); /* an escape is never shorter than what it stands for */
    size_t len = 0;
    while (p->at < end) {
        char c = p->s.at[p->at++];
        if (c != '\\') {
            to[len++] = c;
            continue;
        }
        if (p->at >= end) return false;
        uint32_t r;
        switch (c = p->s.at[p->at++]) {
        case '"': case '\\': case '/': r = (uint32_t)c; break;
        case 'b': r = '\b'; break;
        case 'f': r = '\f'; break;
        case 'n': r = '\n'; break;
        case 'r': r = '\r'; break;
        case 't': r = '\t'; break;
        case 'u': {
            int32_t unit = mh_hex4(p);
            if (unit < 0) return false;
            r = (uint32_t)unit;
            if (r >= 0xd800 && r <= 0xdfff) { /* half of a pair: with the other half one character, alone U+FFFD */
                mh_parser ahead = *p;
                int32_t low = -1;
                if (end - p->at >= 6 && p->s.at[p->at] == '\\' && p->s.at[p->at + 1] == 'u')
                    ahead.at += 2, low = mh_hex4(&ahead);
                if (r < 0xdc00 && low >= 0xdc00 && low <= 0xdfff)
                    r = 0x10000 + ((r & 0x3ff) << 10 | (uint32_t)(low & 0x3ff)), *p = ahead;
                else r = 0xfffd;
            }
            break;
        }
        default: return false;
        }
        len += mh_encode(r, to + len);
    }
    *text = (mh_str){to, len};
    p->at = end + 1;
    return true;
}

/* mh_is_number: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
MH_FN bool mh_is_number(mh_str s) {
    size_t i = s.len && s.at[0] == '-', from = i;
#define MH_DIGITS while (i < s.len && s.at[i] >= '0' && s.at[i] <= '9') i++
    MH_DIGITS;
    if (i == from || (i > from + 1 && s.at[from] == '0')) return false;
    if (i < s.len && s.at[i] == '.') {
        from = ++i;
        MH_DIGITS;
        if (i == from) return false;
    }
    if (i < s.len && (s.at[i] == 'e' || s.at[i] == 'E')) {
        i++;
        if (i < s.len && (s.at[i] == '+' || s.at[i] == '-')) i++;
        from = i;
        MH_DIGITS;
        if (i == from) return false;
    }
#undef MH_DIGITS
    return i == s.len;
}

MH_FN bool mh_parse_value(mh_parser *p, mh_json *v, int depth) {
    mh_blank(p);
    size_t from = p->at;
    *v = (mh_json){.key = v->key};
    if (p->at >= p->s.len) return false;
    char c = p->s.at[p->at];
    if (c == '"') {
        p->at++;
        v->kind = MH_STRING;
        if (!mh_parse_text(p, &v->text)) return false;
    } else if (c == '{' || c == '[') {
        if (depth == MH_MAX_DEPTH) return false;
        char end = c == '{' ? '}' : ']';
        v->kind = c == '{' ? MH_OBJECT : MH_ARRAY;
        p->at++;
        mh_json **last = &v->first;
        if (!mh_take(p, end)) {
            do {
                mh_json *m = mh_alloc(sizeof *m);
                m->key = (mh_str){0};
                if (c == '{' && !(mh_take(p, '"') && mh_parse_text(p, &m->key) && mh_take(p, ':'))) return false;
                if (!mh_parse_value(p, m, depth + 1)) return false;
                *last = m, last = &m->next;
                v->count++;
            } while (mh_take(p, ','));
            if (!mh_take(p, end)) return false;
        }
    } else {
        while (p->at < p->s.len && (unsigned char)(c = p->s.at[p->at]) > ' ' && c != ',' && c != ']' && c != '}') p->at++;
        v->text = (mh_str){p->s.at + from, p->at - from};
        if (mh_is(v->text, "true") || mh_is(v->text, "false")) v->kind = MH_BOOL;
        else if (mh_is_number(v->text)) v->kind = MH_NUMBER;
        else if (!mh_is(v->text, "null")) return false;
    }
    v->raw = (mh_str){p->s.at + from, p->at - from};
    return true;
}

/* mh_parse reads one JSON value (RFC 8259) of UTF-8; NULL where the text is anything else. A backend may answer
 * anything. The value points into the text. */
MH_FN const mh_json *mh_parse(mh_str text) {
    mh_parser p = {text, 0};
    mh_json *v = mh_alloc(sizeof *v);
    v->key = (mh_str){0};
    if (!mh_parse_value(&p, v, 0)) return NULL;
    mh_blank(&p);
    return p.at == text.len ? v : NULL;
}

/* ---- 5. A call, its answer and its error (ABI.md, sections 2 to 4) --------------------------------------------- */

typedef struct {
    const mh_json *envelope;
    const mh_json *body;  /* the operation's request */
    const mh_json *scope; /* run_id, persona_id, agent_id */
    int64_t generation;
    bool read_only;
    mh_writer answer;
    mh_writer error; /* open, so members may be added; empty: the call has not failed */
    const mh_json *config;
} mh_call;

/*
 * mh_fail ends the operation with an error of the contract (ABI.md, section 4 has the codes) and returns false. The error
 * object stays open: the caller may add to call->error what else is known.
 *
 *     return mh_fail(call, "invalid_argument", mh_s("messages[0].role: want a role"));
 */
MH_FN bool mh_fail(mh_call *call, const char *code, mh_str message) {
    mh_str c = mh_s(code);
    call->error = (mh_writer){0};
    mh_open(&call->error, '{');
    mh_put_text(&call->error, "code", c);
    mh_put_text(&call->error, "message", message);
    mh_put_bool(&call->error, "retryable", mh_is(c, "unavailable") || mh_is(c, "rate_limited") || mh_is(c, "timeout"));
    return false;
}

/* mh_pack is an operation's result: where the JSON stands, whether it is an error, and its length. */
MH_FN uint64_t mh_pack(uint32_t at, uint32_t len, bool is_error) {
    return (uint64_t)at << 32 | (uint64_t)is_error << 31 | len;
}

static char *mh_request_at;

/* mh_buffer begins a call: it frees what the call before used, its answer too, and makes room for the request. */
MH_EXPORT(mh_buffer) void *mh_buffer(uint32_t size) {
    mh_arena_reset();
    return mh_request_at = mh_alloc(size ? size : 1);
}
MH_EXPORT(mh_abi_1) void mh_abi_1(void) {}
MH_EXPORT(_initialize) void mh_initialize(void) {}

MH_FN mh_str mh_run(uint32_t len, void (*operation)(mh_call *, mh_writer *), bool *failed) {
    mh_call call = {0};
    call.envelope = mh_parse((mh_str){mh_request_at, len});
    if (!call.envelope) mh_crash("memhost.h: the request is not JSON");
    call.body = mh_get(call.envelope, "body");
    call.scope = mh_get(call.envelope, "scope");
    call.generation = mh_int_or(mh_get(call.envelope, "generation"), 0);
    call.read_only = mh_true(mh_get(mh_get(call.envelope, "mode"), "read_only"));
    operation(&call, &call.answer);
    *failed = call.error.len > 0;
    if (*failed) mh_close(&call.error, '}');
    return mh_json_of(*failed ? &call.error : &call.answer);
}
MH_FN uint64_t mh_serve(uint32_t len, void (*operation)(mh_call *, mh_writer *)) {
    bool failed;
    mh_str json = mh_run(len, operation, &failed);
    return mh_pack((uint32_t)(uintptr_t)json.at, (uint32_t)json.len, failed);
}

/* MH_OPERATION(name) { ... } exports an operation. Its body has call and out. */
#define MH_OPERATION(name)                                                                           \
    static void name##_operation(mh_call *call, mh_writer *out);                                     \
    MH_EXPORT(name) uint64_t mh_export_##name(uint32_t len) { return mh_serve(len, name##_operation); } \
    static void name##_operation(mh_call *call __attribute__((unused)), mh_writer *out __attribute__((unused)))

/* mh_pending takes the result of an import. An error becomes the operation's, as it came. */
MH_FN bool mh_pending(mh_call *call, uint64_t packed, const mh_json **head, mh_str *body) {
    size_t head_len = packed & 0x7fffffff, body_len = packed >> 32;
    char *at = mh_alloc(head_len + body_len + 1);
    if (mh_import_pull(at, (uint32_t)(head_len + body_len)) != head_len + body_len)
        mh_crash("memhost.h: a result is shorter than it was said to be");
    mh_str text = {at, head_len};
    if (packed >> 31 & 1) {
        call->error = (mh_writer){0};
        while (text.len && text.at[text.len - 1] != '}') text.len--; /* without its last brace it is open, as mh_fail's */
        if (text.len) text.len--;
        mh_add(&call->error, text);
        call->error.comma = true;
        return false;
    }
    *head = mh_parse(text);
    if (!*head) mh_crash("memhost.h: a result's head is not JSON");
    if (body) *body = (mh_str){at + head_len, body_len};
    return true;
}

/* mh_config is GuestConfig: provider, kind, namespace, frame, secrets, and under config the operator's block. */
MH_FN const mh_json *mh_config(mh_call *call) {
    if (!call->config && !mh_pending(call, mh_import_config(), &call->config, NULL)) return &mh_null;
    return call->config;
}
/* mh_setting is a member of the operator's block. */
MH_FN const mh_json *mh_setting(mh_call *call, const char *key) {
    return mh_get(mh_get(mh_config(call), "config"), key);
}
/* mh_has_secret reports whether the operator set a secret. Its value never enters the guest. */
MH_FN bool mh_has_secret(mh_call *call, const char *name) {
    for (const mh_json *s = mh_get(mh_config(call), "secrets")->first; s; s = s->next)
        if (mh_is(s->text, name)) return true;
    return false;
}

/* mh_bearer is the value of an authorization header with a secret, empty where the operator set none. */
MH_FN mh_str mh_bearer(mh_call *call, const char *secret) {
    return mh_has_secret(call, secret) ? mh_join(3, mh_s("Bearer {{secret:"), mh_s(secret), mh_s("}}")) : MH_NONE;
}

MH_FN int64_t mh_deadline(void) { return mh_import_deadline(); } /* milliseconds left */
MH_FN void mh_log(int level, mh_str text) { mh_import_log(level, text.at, (uint32_t)text.len); }

/* ---- 6. Requests to the backend (ABI.md, section 5, HTTP) ------------------------------------------------------- */

/* A request by one of the manifest's routes. Texts that are JSON: params an object of strings, query a list of {"key",
 * "value"}, headers an object. What is left zero is not sent. */
typedef struct {
    const char *route;
    mh_str params, query, headers;
    mh_str body;
    int64_t timeout_ms;
} mh_request;

typedef struct {
    int64_t status;
    bool empty;             /* the manifest declares that this answer means "nothing there" */
    const mh_json *headers; /* names in lower case */
    mh_str body;
    const mh_json *json; /* the body, or NULL where it is not JSON */
} mh_reply;

/* mh_exchange sends a request. Every answer of the backend is a reply; false: it was refused, or never came. */
MH_FN bool mh_exchange(mh_call *call, mh_request request, mh_reply *reply) {
    mh_writer head = {0};
    mh_open(&head, '{');
    mh_put_text(&head, "route", mh_s(request.route));
    if (request.params.len) mh_put_raw(&head, "params", request.params);
    if (request.query.len) mh_put_raw(&head, "query", request.query);
    if (request.headers.len) mh_put_raw(&head, "headers", request.headers);
    if (request.timeout_ms) mh_put_int(&head, "timeout_ms", request.timeout_ms);
    mh_close(&head, '}');
    const mh_json *said;
    *reply = (mh_reply){0};
    if (!mh_pending(call, mh_import_http_send(head.at, (uint32_t)head.len, request.body.at, (uint32_t)request.body.len),
                    &said, &reply->body))
        return false;
    reply->status = mh_int_or(mh_get(said, "status"), 0);
    reply->empty = mh_true(mh_get(said, "empty"));
    reply->headers = mh_get(said, "headers");
    reply->json = mh_parse(reply->body);
    return true;
}

/* mh_query is a query of one parameter, empty where the value is. */
MH_FN mh_str mh_query(const char *key, mh_str value) {
    mh_writer w = {0};
    if (!value.len) return MH_NONE;
    mh_open(&w, '['), mh_raw(&w, mh_texts(2, "key", mh_s(key), "value", value)), mh_close(&w, ']');
    return mh_json_of(&w);
}

MH_FN bool mh_native_error(mh_call *call, const char *code, const char *route, int64_t status, const char *what, mh_str body) {
    mh_fail(call, code, mh_join(2, mh_s(route), mh_s(what)));
    mh_writer *e = &call->error;
    mh_put_text(e, "route", mh_s(route));
    mh_key(e, "native"), mh_open(e, '{');
    mh_put_int(e, "status", status);
    mh_put_text(e, "body", body); /* the host cuts it */
    mh_close(e, '}');
    return false;
}

/* mh_status_code is the code of the contract for a status of HTTP that is no success. */
MH_FN const char *mh_status_code(int64_t status) {
    switch (status) {
    case 401: return "unauthenticated";
    case 403: return "denied";
    case 404: return "not_found";
    case 409: return "conflict";
    case 413: return "too_large";
    case 429: return "rate_limited";
    case 502: case 503: return "unavailable";
    case 504: return "timeout";
    default: return "backend";
    }
}

/* mh_unusable is the error for a success that lacks what it should hold. It is never taken for an empty answer. */
MH_FN bool mh_unusable(mh_call *call, const char *route, const mh_reply *reply) {
    return mh_native_error(call, "backend", route, reply->status, ": the backend's answer cannot be used", reply->body);
}

/* mh_send is mh_exchange where only a success with a JSON body counts, or an answer that is declared empty: reply->json is
 * then never NULL. Every other answer is the operation's error, with the backend's own words. */
MH_FN bool mh_send(mh_call *call, mh_request request, mh_reply *reply) {
    if (!mh_exchange(call, request, reply)) return false;
    if (reply->empty) return reply->json = &mh_null, true;
    if (reply->status >= 200 && reply->status < 300)
        return reply->json ? true : mh_unusable(call, request.route, reply);
    mh_native_error(call, mh_status_code(reply->status), request.route, reply->status, ": the backend answered with an error",
                    reply->body);
    const mh_json *after = mh_parse(mh_string(reply->headers, "retry-after")); /* seconds, where it is no date */
    int64_t seconds = after ? mh_int_or(after, -1) : -1;
    if (seconds >= 0 && seconds < 1000000) mh_put_int(&call->error, "retry_after_ms", seconds * 1000);
    return false;
}

/* ---- 7. State (ABI.md, section 5) ------------------------------------------------------------------------------- */

/* A version of state is an int64, and larger than a double can hold. */
#define MH_ANY_VERSION (-1)
#define MH_ABSENT 0

/* mh_state_get: *version is MH_ABSENT where there is no value. version may be NULL. */
MH_FN bool mh_state_get(mh_call *call, mh_str key, mh_str *value, int64_t *version) {
    const mh_json *head;
    if (!mh_pending(call, mh_import_state_get(key.at, (uint32_t)key.len), &head, value)) return false;
    if (version) *version = mh_int_or(mh_get(head, "version"), MH_ABSENT);
    return true;
}
/* mh_state_put: expected is MH_ANY_VERSION, MH_ABSENT, or the version that the value must have, else it is conflict. */
MH_FN bool mh_state_put(mh_call *call, mh_str key, mh_str value, int64_t expected, int64_t *version) {
    const mh_json *head;
    uint64_t packed = mh_import_state_put(key.at, (uint32_t)key.len, value.at, (uint32_t)value.len, expected);
    if (!mh_pending(call, packed, &head, NULL)) return false;
    if (version) *version = mh_int_or(mh_get(head, "version"), MH_ABSENT);
    return true;
}
/* mh_state_delete removes keys and logs whose name begins with prefix. */
MH_FN bool mh_state_delete(mh_call *call, mh_str prefix, int64_t *deleted) {
    const mh_json *head;
    if (!mh_pending(call, mh_import_state_delete(prefix.at, (uint32_t)prefix.len), &head, NULL)) return false;
    if (deleted) *deleted = mh_int_or(mh_get(head, "deleted"), 0);
    return true;
}
MH_FN bool mh_state_append(mh_call *call, mh_str log, mh_str value, int64_t *seq) {
    const mh_json *head;
    uint64_t packed = mh_import_state_append(log.at, (uint32_t)log.len, value.at, (uint32_t)value.len);
    if (!mh_pending(call, packed, &head, NULL)) return false;
    if (seq) *seq = mh_int_or(mh_get(head, "seq"), 0);
    return true;
}
/* mh_state_list and mh_state_read take a request and give the head, each as ABI.md writes them. values are one after
 * another, in the sizes that the head has. */
MH_FN bool mh_state_list(mh_call *call, mh_str request, const mh_json **head, mh_str *values) {
    return mh_pending(call, mh_import_state_list(request.at, (uint32_t)request.len), head, values);
}
MH_FN bool mh_state_read(mh_call *call, mh_str request, const mh_json **head, mh_str *values) {
    return mh_pending(call, mh_import_state_read(request.at, (uint32_t)request.len), head, values);
}

/* ---- 8. Native ids and digests ---------------------------------------------------------------------------------- */

/* mh_sha256 is the digest of a text, as 64 hex digits. */
MH_FN mh_str mh_sha256(mh_str s) {
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
        0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
        0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
        0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
        0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
        0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, w[64];
    for (size_t block = 0; block < (s.len + 9 + 63) / 64; block++) {
        for (size_t i = 0; i < 64; i++) {
            size_t at = block * 64 + i, total = (s.len + 9 + 63) / 64 * 64;
            uint32_t b = at < s.len ? (unsigned char)s.at[at] : at == s.len ? 0x80 : 0;
            if (at >= total - 8) b = (uint32_t)((uint64_t)s.len * 8 >> (total - 1 - at) * 8 & 0xff);
            w[i / 4] = i % 4 ? w[i / 4] << 8 | b : b;
        }
#define MH_ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
        for (size_t i = 16; i < 64; i++)
            w[i] = w[i - 16] + (MH_ROTATE(w[i - 15], 7) ^ MH_ROTATE(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
                   (MH_ROTATE(w[i - 2], 17) ^ MH_ROTATE(w[i - 2], 19) ^ w[i - 2] >> 10);
        uint32_t v[8];
        memcpy(v, h, sizeof v);
        for (size_t i = 0; i < 64; i++) {
            uint32_t a = v[7] + (MH_ROTATE(v[4], 6) ^ MH_ROTATE(v[4], 11) ^ MH_ROTATE(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
            uint32_t b = (MH_ROTATE(v[0], 2) ^ MH_ROTATE(v[0], 13) ^ MH_ROTATE(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
            for (size_t j = 7; j > 0; j--) v[j] = v[j - 1];
            v[4] += a, v[0] = a + b;
        }
#undef MH_ROTATE
        for (size_t i = 0; i < 8; i++) h[i] += v[i];
    }
    char *hex = mh_alloc(64);
    for (size_t i = 0; i < 64; i++) hex[i] = "0123456789abcdef"[h[i / 8] >> (28 - i % 8 * 4) & 15];
    return (mh_str){hex, 64};
}

/* mh_add_id adds a part of a native id: letters and digits stand for themselves, every other byte is _ and two hex
 * digits. Parts with - between them are then never mistaken for others. */
MH_FN void mh_add_id(mh_writer *w, mh_str part) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < part.len; i++) {
        unsigned char c = (unsigned char)part.at[i], low = c | 0x20;
        if ((c >= '0' && c <= '9') || (low >= 'a' && low <= 'z')) mh_add_byte(w, (char)c);
        else mh_add(w, (mh_str){(char[]){'_', digits[c >> 4], digits[c & 15]}, 3});
    }
}

/* mh_scope_id is the backend's id of the call's scope: provider, namespace, run, person, agent and generation, so that two
 * scopes never share one, whatever their ids hold. max is the backend's limit in bytes, at least 66, or 0: what is longer
 * becomes a hash. */
MH_FN mh_str mh_scope_id(mh_call *call, size_t max) {
    const mh_json *config = mh_config(call);
    mh_str parts[] = {mh_string(config, "provider"), mh_string(config, "namespace"), mh_string(call->scope, "run_id"),
                      mh_string(call->scope, "persona_id"), mh_string(call->scope, "agent_id"), mh_decimal(call->generation)};
    mh_writer w = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i) mh_add_byte(&w, '-');
        mh_add_id(&w, parts[i]);
    }
    mh_str id = mh_json_of(&w);
    return max && id.len > max ? mh_join(2, mh_s("_h"), mh_sha256(id)) : id;
}

/* ---- 9. Times --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t seconds; /* since 1970, in UTC */
    int64_t nanos;
} mh_time;

/* mh_parse_time reads a time of RFC 3339. Digits below a nanosecond are dropped. */
MH_FN bool mh_parse_time(mh_str s, mh_time *t) {
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    int64_t n[6] = {0}, field = 0;
    size_t i = 0;
    for (; i < sizeof shape - 1; i++) {
        if (i >= s.len) return false;
        char c = s.at[i];
        if (shape[i] == 'd') {
            if (c < '0' || c > '9') return false;
            n[field] = n[field] * 10 + (c - '0');
        } else if (c != shape[i] && !(shape[i] == 'T' && (c == 't' || c == ' '))) return false;
        else field++;
    }
    if (n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 || n[4] > 59 || n[5] > 60) return false;
    t->nanos = 0;
    if (i < s.len && s.at[i] == '.') {
        int64_t unit = 100000000;
        size_t from = ++i;
        for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++, unit /= 10) t->nanos += (s.at[i] - '0') * unit;
        if (i == from) return false;
    }
    int64_t zone = 0;
    if (i < s.len && (s.at[i] == 'Z' || s.at[i] == 'z')) i++;
    else {
        if (s.len - i != 6 || (s.at[i] != '+' && s.at[i] != '-') || s.at[i + 3] != ':') return false;
        for (size_t j = 1; j < 6; j++)
            if (j != 3 && (s.at[i + j] < '0' || s.at[i + j] > '9')) return false;
        zone = ((s.at[i + 1] - '0') * 10 + s.at[i + 2] - '0') * 3600 + ((s.at[i + 4] - '0') * 10 + s.at[i + 5] - '0') * 60;
        if (s.at[i] == '-') zone = -zone;
        i += 6;
    }
    if (i != s.len) return false;
    int64_t y = n[0] - (n[1] <= 2), m = (n[1] + 9) % 12; /* years begin in March, so a leap day is a year's last */
    int64_t days = y * 365 + (y + 400) / 4 - 100 - ((y + 400) / 100 - 4) + ((y + 400) / 400 - 1) + (m * 153 + 2) / 5 + n[2] - 719469;
    t->seconds = days * 86400 + n[3] * 3600 + n[4] * 60 + n[5] - zone;
    return true;
}
MH_FN int mh_compare_times(mh_time a, mh_time b) {
    if (a.seconds != b.seconds) return a.seconds < b.seconds ? -1 : 1;
    return a.nanos == b.nanos ? 0 : a.nanos < b.nanos ? -1 : 1;
}

/* mh_means reports whether a ForgetRequest means an item: by its native id, its event, its session or its time. */
MH_FN bool mh_means(const mh_json *request, mh_str native_id, mh_str event_id, mh_str session_id, mh_str timestamp) {
    for (const mh_json *e = mh_get(request, "event_ids")->first; e; e = e->next)
        if (mh_equal(e->text, event_id)) return true;
    for (const mh_json *e = mh_get(request, "native_ids")->first; e; e = e->next)
        if (mh_equal(e->text, native_id)) return true;
    mh_str session = mh_string(request, "session_id");
    if (session.len && mh_equal(session, session_id)) return true;
    mh_time from, to, at;
    return mh_parse_time(mh_string(request, "from"), &from) && mh_parse_time(mh_string(request, "to"), &to) &&
           mh_parse_time(timestamp, &at) && mh_compare_times(from, at) <= 0 && mh_compare_times(at, to) <= 0;
}

/* ---- 10. The text for the prompt (ABI.md, section 3, format_context and Frames) --------------------------------- */

MH_FN int64_t mh_tokens(mh_str s) { return mh_import_tokens_count(s.at, (uint32_t)s.len); }

/* mh_tokens_prefix is the longest prefix, ending between characters, of at most max tokens. */
MH_FN mh_str mh_tokens_prefix(mh_str s, int64_t max) {
    if (max <= 0) return (mh_str){s.at, 0};
    uint64_t fit = mh_import_tokens_fit(s.at, (uint32_t)s.len, max > INT32_MAX ? INT32_MAX : (int32_t)max);
    return (mh_str){s.at, (size_t)(fit & 0xffffffff)};
}

/* mh_looks_like_bracket: characters that a reader may take for "<". */
MH_FN bool mh_looks_like_bracket(uint32_t r) {
    static const uint32_t all[] = {'<',    0x2c2,  0x1438, 0x16b2, 0x2039, 0x2329, 0x276c,  0x276e, 0x27e8,
                                   0x3008, 0x304f, 0x31db, 0xfe3f, 0xfe64, 0xff1c, 0x1d236, 0x21fe8};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (r == all[i]) return true;
    return false;
}

/* mh_add_escaped adds a text that can neither open nor close the element <memory-context>: a backslash stands behind each
 * bracket that may begin its tag with what follows. Blanks, slashes and controls before the name do not count, and a
 * character that is not ASCII may look like the name's first letter. */
MH_FN void mh_add_escaped(mh_writer *w, mh_str s) {
    size_t from = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t bracket, r = 0;
        size_t n = mh_utf8(s, i, &bracket);
        i += n ? n : 1;
        if (!n || !mh_looks_like_bracket(bracket)) continue;
        size_t at = i;
        while (at < s.len && ((unsigned char)s.at[at] <= ' ' || s.at[at] == '/' || s.at[at] == 0x7f)) at++;
        bool letter = bracket == 0x1438 || bracket == 0x16b2 || bracket == 0x304f || bracket == 0x21fe8;
        if (at < s.len && !mh_utf8(s, at, &r)) r = 0xfffd;
        if (letter && r != 0xff2d && r != 0xff4d && (r | 0x20) != 'm') continue; /* a letter of ordinary words */
        if (at < s.len && r < 0x80 && (r | 0x20) != 'm') continue;
        mh_add(w, (mh_str){s.at + from, i - from});
        mh_add_byte(w, '\\');
        from = i;
    }
    mh_add(w, (mh_str){s.at + from, s.len - from});
}

/* mh_add_attribute adds a text that stands between quotation marks: entities, and blanks for line ends and tabs. */
MH_FN void mh_add_attribute(mh_writer *w, mh_str s) {
    for (size_t i = 0; i < s.len;) {
        uint32_t r = 0;
        size_t n = mh_utf8(s, i, &r);
        if (!n) n = 1, r = (unsigned char)s.at[i];
        if (r == '&') mh_add(w, mh_s("&amp;"));
        else if (r == '>') mh_add(w, mh_s("&gt;"));
        else if (r == '"') mh_add(w, mh_s("&quot;"));
        else if (mh_looks_like_bracket(r)) mh_add(w, mh_join(3, mh_s("&#"), mh_decimal(r), mh_s(";")));
        else if (r == '\n' || r == '\r' || r == '\t') mh_add_byte(w, ' ');
        else mh_add(w, (mh_str){s.at + i, n});
        i += n;
    }
}

/* An item of the text. text is the item's own words. before stands before them in the frame full, brief in compact and
 * minimal: "- " and "2026-03-01 ", for example. Both are plain; the item's place in the list is its evidence's. */
typedef struct {
    mh_str text, before, brief;
} mh_item;

typedef struct {
    size_t start, end; /* bytes of the text, half open */
    bool whole;
} mh_shown;

/* A text that fits its budget. */
typedef struct {
    mh_str text;                  /* the element, or empty */
    int64_t tokens, frame_tokens; /* of the text; of what it has beside the items' own words */
    bool truncated;
    size_t count;    /* of the items that are shown: the first ones */
    mh_shown *shown; /* of each of them */
} mh_fitted;

typedef struct {
    mh_str backend, frame, scope; /* attributes; frame is full, compact or minimal */
    bool control;                 /* condition_kind="control" is written for controls only */
    bool utc;                     /* the items' before or brief have times without a zone, which are in UTC */
    const mh_item *items;
    size_t count;
} mh_context;

/* mh_add_lines adds an item's words, escaped. Further lines begin with two blanks, so that none looks like another item. */
MH_FN void mh_add_lines(mh_writer *w, mh_str s) {
    while (s.len && (s.at[s.len - 1] == '\n' || s.at[s.len - 1] == '\r')) s.len--;
    mh_writer lines = {0};
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] == '\r' && i + 1 < s.len && s.at[i + 1] == '\n') continue;
        if (s.at[i] == '\n' || s.at[i] == '\r') mh_add(&lines, mh_s("\n  "));
        else mh_add_byte(&lines, s.at[i]);
    }
    mh_add_escaped(w, mh_json_of(&lines));
}

#define MH_CONTEXT_END "</memory-context>"

/* mh_compose writes the element with the first n items. cut stands in place of the only item's words, unless it is empty. */
MH_FN mh_fitted mh_compose(const mh_context *x, size_t n, mh_str cut) {
    mh_fitted f = {.count = n, .truncated = n < x->count, .shown = mh_alloc(sizeof(mh_shown) * (n + 1))};
    if (!n) return f;
    bool compact = mh_is(x->frame, "compact"), brief = compact || mh_is(x->frame, "minimal");
    mh_writer w = {0}, frame = {0};
    mh_add(&w, mh_s("<memory-context backend=\"")), mh_add_attribute(&w, x->backend);
    mh_add(&w, mh_s("\" scope=\"")), mh_add_attribute(&w, x->scope);
    mh_add_byte(&w, '"');
    if (x->control) mh_add(&w, mh_s(" condition_kind=\"control\""));
    if (x->utc) mh_add(&w, mh_s(" times=\"UTC\""));
    mh_add(&w, mh_s(">\n"));
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        if (compact) mh_add_byte(&w, 'm'), mh_add(&w, mh_decimal((int64_t)i + 1)), mh_add_byte(&w, ' ');
        mh_add_escaped(&w, brief ? x->items[i].brief : x->items[i].before);
        f.shown[i] = (mh_shown){.start = w.len, .whole = !cut.len};
        if (cut.len) mh_add(&w, cut);
        else mh_add_lines(&w, x->items[i].text);
        f.shown[i].end = w.len;
        mh_add(&frame, (mh_str){w.at + done, f.shown[i].start - done});
        done = w.len;
        mh_add(&w, mh_s(cut.len ? "\n[cut to fit the budget]\n" : "\n"));
    }
    mh_add(&w, mh_s(MH_CONTEXT_END));
    mh_add(&frame, (mh_str){w.at + done, w.len - done});
    f.text = mh_json_of(&w);
    f.tokens = mh_tokens(f.text);
    int64_t own = mh_tokens(mh_json_of(&frame));
    f.frame_tokens = own < f.tokens ? own : f.tokens; /* an estimator may count a part higher than the whole */
    return f;
}

/*
 * mh_fit keeps as many of the first items as the budget's max_tokens and max_items allow. Where not even the first one
 * fits whole, its beginning is kept and a mark is added. Counts of tokens do not add up, so each attempt is counted whole.
 */
MH_FN mh_fitted mh_fit(const mh_context *x, const mh_json *budget) {
    int64_t limit = mh_int_or(mh_get(budget, "max_tokens"), INT64_MAX);
    int64_t most = mh_int_or(mh_get(budget, "max_items"), INT64_MAX);
    size_t good = 0, bad = most < 0 ? 0 : (uint64_t)most < x->count ? (size_t)most : x->count;
    mh_fitted best = mh_compose(x, bad, (mh_str){0});
    if (best.tokens <= limit) return best;
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        mh_fitted next = mh_compose(x, middle, (mh_str){0});
        if (next.tokens <= limit) best = next, good = middle;
        else bad = middle;
    }
    if (good) return best;
    mh_writer lines = {0};
    mh_add_lines(&lines, x->items[0].text);
    for (int64_t room = limit; room > 0; room -= 1 + room / 8) {
        mh_str cut = mh_tokens_prefix(mh_json_of(&lines), room);
        if (!cut.len) break;
        best = mh_compose(x, 1, cut);
        best.truncated = true;
        best.shown[0].whole = cut.len == lines.len;
        if (best.tokens <= limit) return best;
    }
    return (mh_fitted){.truncated = true};
}

/* mh_context_of is the element for a call: provider, kind and frame as configured, and the call's scope. */
MH_FN mh_context mh_context_of(mh_call *call, const mh_item *items, size_t count) {
    const mh_json *config = mh_config(call);
    return (mh_context){.backend = mh_string(config, "provider"), .frame = mh_string(config, "frame"),
                        .scope = mh_join(3, mh_string(call->scope, "run_id"), mh_s("/"), mh_string(call->scope, "persona_id")),
                        .control = mh_is(mh_string(config, "kind"), "control"), .items = items, .count = count};
}

/* mh_put_shown adds shown to the evidence of item i, where it is shown. */
MH_FN void mh_put_shown(mh_writer *w, const mh_fitted *f, size_t i) {
    if (i >= f->count) return;
    mh_key(w, "shown"), mh_open(w, '{');
    mh_put_int(w, "start", (int64_t)f->shown[i].start);
    mh_put_int(w, "end", (int64_t)f->shown[i].end);
    mh_put_bool(w, "whole", f->shown[i].whole);
    mh_close(w, '}');
}

/* mh_put_budget adds to a trace what became of the budget: token_count, frame_tokens, truncated, budget_applied with every
 * field that the budget has, and budget_shortfall. sent is the number of items that the backend was asked for, received
 * how many it gave. */
MH_FN void mh_put_budget(mh_writer *w, const mh_fitted *f, const mh_json *budget, int64_t sent, int64_t received) {
    mh_put_int(w, "token_count", f->tokens);
    mh_put_int(w, "frame_tokens", f->frame_tokens);
    mh_put_bool(w, "truncated", f->truncated);
    mh_key(w, "budget_applied"), mh_open(w, '{');
    mh_key(w, "max_items"), mh_open(w, '{');
    mh_put_text(w, "how", mh_s("native"));
    mh_put_int(w, "sent", sent), mh_put_int(w, "received", received), mh_put_int(w, "shown", (int64_t)f->count);
    mh_close(w, '}');
    if (mh_present(mh_get(budget, "max_tokens"))) {
        mh_key(w, "max_tokens"), mh_open(w, '{');
        mh_put_text(w, "how", mh_s("formatter"));
        mh_put_int(w, "shown", f->tokens - f->frame_tokens);
        mh_close(w, '}');
    }
    int64_t least = mh_int_or(mh_get(budget, "min_tokens"), -1);
    if (least >= 0) mh_put_raw(w, "min_tokens", mh_s("{\"how\":\"advisory\"}"));
    mh_close(w, '}');
    if (least > f->tokens) mh_put_int(w, "budget_shortfall", least - f->tokens);
}

/* mh_label is a label that an event has or a question asks for, i from 0 to 2: false where it has none. A question with
 * filters.cross_context does not ask for its context. */
MH_FN bool mh_label(const mh_json *request, size_t i, const char **name, mh_str *value) {
    static const char *const names[] = {"scenario", "context", "attribute"};
    *name = names[i];
    *value = mh_string(request, names[i]);
    return value->len && !(i == 1 && mh_true(mh_get(mh_get(request, "filters"), "cross_context")));
}
#define MH_LABELS 3

/* mh_put_labels adds a member with those labels. */
MH_FN void mh_put_labels(mh_writer *w, const char *key, const mh_json *request) {
    const char *name;
    mh_str value;
    mh_key(w, key), mh_open(w, '{');
    for (size_t i = 0; i < MH_LABELS; i++)
        if (mh_label(request, i, &name, &value)) mh_put_text(w, name, value);
    mh_close(w, '}');
}

/* mh_said is an event's messages as one text, each on a line of its own, with the names of who spoke. */
MH_FN mh_str mh_said(const mh_json *event) {
    mh_writer w = {0};
    for (const mh_json *m = mh_get(event, "messages")->first; m; m = m->next) {
        if (!mh_present(mh_get(m, "content"))) continue; /* it calls tools */
        if (w.len) mh_add_byte(&w, '\n');
        if (mh_string(m, "name").len) mh_add(&w, mh_join(2, mh_string(m, "name"), mh_s(": ")));
        mh_add(&w, mh_string(m, "content"));
    }
    return mh_json_of(&w);
}

/* mh_put_raw_of adds raw: the one answer of the backend, or none where nothing was there. */
MH_FN void mh_put_raw_of(mh_writer *w, const char *route, const mh_reply *reply) {
    mh_key(w, "raw"), mh_open(w, '{'), mh_key(w, "calls"), mh_open(w, '[');
    if (!reply->empty) {
        mh_open(w, '{');
        mh_put_text(w, "route", mh_s(route)), mh_put_raw(w, "body", reply->json->raw);
        mh_close(w, '}');
    }
    mh_close(w, ']'), mh_close(w, '}');
}

/* mh_put_filters adds filter_mode and filters_applied to the trace of a retrieval whose labels were all used in one way
 * (hard, semantic, none), and of which no other filter was used. */
MH_FN void mh_put_filters(mh_writer *w, const mh_json *request, const char *how) {
    const char *name, *mode = "none";
    mh_str value;
    mh_key(w, "filters_applied"), mh_open(w, '{');
    for (size_t i = 0; i < MH_LABELS; i++) {
        bool used = mh_label(request, i, &name, &value);
        if (value.len) mh_put_text(w, name, mh_s(used ? how : "none"));
        if (used) mode = how;
    }
    for (const mh_json *f = mh_get(request, "filters")->first; f; f = f->next)
        if (!mh_is(f->key, "cross_context")) mh_key_of(w, f->key), mh_text(w, mh_s("none"));
    mh_close(w, '}');
    mh_put_text(w, "filter_mode", mh_s(mode));
}

#endif
