/*
 * memhost.h on the computer's own processor, for tests: it answers requests from standard input. A request is a letter, four
 * bytes with the length of a text, and the text; an answer is four bytes and a text.
 */
#include <stdio.h>

#include "../memhost.h"

/* The imports that the tests need. A token is a byte. */
static mh_str pending;
static const char *config = "{\"provider\":\"p\",\"namespace\":\"lab\",\"frame\":\"compact\",\"kind\":\"control\"}";

uint64_t mh_import_config(void) { return pending = mh_s(config), pending.len; }
uint32_t mh_import_pull(void *at, uint32_t len) {
    uint32_t n = len < pending.len ? len : (uint32_t)pending.len;
    if (n) memcpy(at, pending.at, n);
    return n;
}
void mh_import_log(int32_t level, const void *text, uint32_t len) { fprintf(stderr, "%d %.*s\n", level, (int)len, (const char *)text); }
int64_t mh_import_tokens_count(const void *text, uint32_t len) { return (void)text, len; }
uint64_t mh_import_tokens_fit(const void *text, uint32_t len, int32_t max) {
    mh_str s = {text, len};
    size_t end = 0;
    for (uint32_t r; end < len;) {
        size_t n = mh_utf8(s, end, &r);
        if (!n) n = 1;
        if (end + n > (uint32_t)max) break;
        end += n;
    }
    return (uint64_t)end << 32 | end;
}
/* The backend answers 200 with what the test gave as its body, and 503 to nothing. */
static mh_str backend;
uint64_t mh_import_http_send(const void *head, uint32_t head_len, const void *body, uint32_t len) {
    (void)head, (void)head_len, (void)body, (void)len;
    mh_str said = mh_s(backend.len ? "{\"status\":200}" : "{\"status\":503,\"headers\":{\"retry-after\":\"2\"}}");
    pending = mh_join(2, said, backend);
    return (uint64_t)backend.len << 32 | said.len;
}

/* write writes a value again, with everything that was read of it. */
static void rewrite(mh_writer *w, const mh_json *v) {
    if (v->kind == MH_STRING) mh_text(w, v->text);
    else if (v->kind != MH_OBJECT && v->kind != MH_ARRAY) mh_raw(w, v->raw);
    else {
        mh_open(w, v->kind == MH_OBJECT ? '{' : '[');
        for (const mh_json *m = v->first; m; m = m->next) {
            if (v->kind == MH_OBJECT) mh_key_of(w, m->key);
            rewrite(w, m);
        }
        mh_close(w, v->kind == MH_OBJECT ? '}' : ']');
    }
}

MH_OPERATION(health) {
    mh_reply reply;
    if (mh_send(call, (mh_request){"health"}, &reply)) mh_raw(out, reply.body);
}

static mh_str answer(char what, mh_str text) {
    mh_writer w = {0};
    const mh_json *v;
    int64_t n;
    mh_time t;
    switch (what) {
    case 'j': /* JSON, read and written again; ! where it is refused */
        v = mh_parse(text);
        if (v) rewrite(&w, v);
        else mh_add(&w, mh_s("!"));
        break;
    case 'q': mh_text(&w, text); break;
    case 'i': /* a number as an integer */
        v = mh_parse(text);
        mh_add(&w, v && mh_int64(v, &n) ? mh_decimal(n) : mh_s("!"));
        break;
    case 'd': w.at = (char *)mh_sha256(text).at, w.len = 64; break;
    case 's': { /* an envelope's scope as a native id of at most 100 bytes */
        v = mh_parse(text);
        mh_call call = {.scope = mh_get(v, "scope"), .generation = mh_int_or(mh_get(v, "generation"), 0)};
        mh_add(&w, mh_scope_id(&call, 100));
        break;
    }
    case 't': /* a time in seconds and nanoseconds */
        if (mh_parse_time(text, &t)) mh_add(&w, mh_join(3, mh_decimal(t.seconds), mh_s("."), mh_decimal(t.nanos)));
        else mh_add(&w, mh_s("!"));
        break;
    case 'e': mh_add_escaped(&w, text); break;
    case 'a': mh_add_attribute(&w, text); break;
    case 'f': { /* {"texts", "budget", "frame"}: the fitted text */
        v = mh_parse(text);
        const mh_json *texts = mh_get(v, "texts");
        mh_item *items = mh_alloc(sizeof *items * (texts->count + 1));
        size_t i = 0;
        for (const mh_json *s = texts->first; s; s = s->next) items[i++] = (mh_item){s->text, mh_s("- "), mh_s("2026-03-01 ")};
        mh_context x = {mh_s("p"), mh_string(v, "frame"), mh_s("r/<p>"), true, true, items, i};
        mh_fitted f = mh_fit(&x, mh_get(v, "budget"));
        mh_open(&w, '{');
        mh_put_text(&w, "text", f.text), mh_put_int(&w, "count", (int64_t)f.count);
        mh_key(&w, "evidence"), mh_open(&w, '[');
        for (i = 0; i < f.count; i++) mh_open(&w, '{'), mh_put_shown(&w, &f, i), mh_close(&w, '}');
        mh_close(&w, ']');
        mh_put_budget(&w, &f, mh_get(v, "budget"), 7, (int64_t)texts->count);
        mh_close(&w, '}');
        break;
    }
    case 'h': { /* health, of a backend that answers text */
        bool failed;
        const char *request = "{\"op\":\"health\",\"mode\":{\"read_only\":true},\"generation\":9007199254740993,\"body\":{}}";
        backend = text;
        mh_request_at = mh_alloc(strlen(request));
        memcpy(mh_request_at, request, strlen(request));
        mh_str json = mh_run((uint32_t)strlen(request), health_operation, &failed);
        mh_add(&w, mh_s(failed ? "error " : "answer ")), mh_add(&w, json);
        break;
    }
    default: mh_crash("unknown request");
    }
    return mh_json_of(&w);
}

int main(void) {
    unsigned char head[5];
    while (fread(head, 1, 5, stdin) == 5) {
        size_t len = head[1] | head[2] << 8 | head[3] << 16 | (size_t)head[4] << 24;
        char *text = malloc(len ? len : 1); /* exactly as long as the text: a sanitizer sees a byte too many */
        if (!text || fread(text, 1, len, stdin) != len) return 1;
        mh_str said = answer((char)head[0], (mh_str){text, len});
        unsigned char n[4] = {(unsigned char)said.len, (unsigned char)(said.len >> 8), (unsigned char)(said.len >> 16), (unsigned char)(said.len >> 24)};
        fwrite(n, 1, 4, stdout);
        if (said.len) fwrite(said.at, 1, said.len, stdout);
        fflush(stdout);
        mh_arena_reset();
        free(text);
    }
    return 0;
}
