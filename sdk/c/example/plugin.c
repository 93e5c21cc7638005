/*
 * A memory plugin in C, in front of the tiny backend of memhost (`memhost backend --help` has its routes): it translates
 * between the contract and a memory server. Put your own server's requests in place of the tiny backend's.
 */
#include "memhost.h"

/* ask sends a request about the call's scope, with the operator's secret where there is one. item fills the path's {id}. */
static bool ask(mh_call *call, mh_request request, mh_str item, mh_reply *reply) {
    if (!mh_is(mh_s(request.route), "health")) request.params = mh_texts(2, "scope", mh_scope_id(call, 0), "id", item);
    mh_str type = request.body.len ? mh_s("application/json") : MH_NONE;
    request.headers = mh_texts(2, "content-type", type, "authorization", mh_bearer(call, "api_key"));
    return mh_send(call, request, reply);
}

/* items is the list of an answer of the backend; NULL where it is not there, or holds something else. */
static const mh_json *items(const mh_json *answer) {
    const mh_json *list = mh_get(answer, "items");
    if (list->kind != MH_ARRAY) return NULL;
    for (const mh_json *i = list->first; i; i = i->next)
        if (!mh_string(i, "id").len || mh_get(i, "text")->kind != MH_STRING) return NULL;
    return list;
}

/* list asks for what the scope holds, or for what one event became. An unknown scope holds nothing. */
static bool list(mh_call *call, mh_str event, const mh_json **found) {
    mh_reply reply;
    mh_request request = {"list", .query = mh_query("event_id", event)};
    if (!ask(call, request, MH_NONE, &reply)) return false;
    *found = reply.empty ? &mh_null : items(reply.json);
    return *found || mh_unusable(call, "list", &reply);
}

/* waits counts what is still in the backend's queue. */
static bool waits(mh_call *call, int64_t *pending) {
    mh_reply reply;
    if (!ask(call, (mh_request){"status"}, MH_NONE, &reply)) return false;
    *pending = 0;
    return reply.empty || mh_int64(mh_get(reply.json, "pending"), pending) || mh_unusable(call, "status", &reply);
}

MH_OPERATION(setup_scope) {
    mh_reply reply;
    mh_open(out, '{');
    if (!call->read_only) {
        if (!ask(call, (mh_request){"create"}, MH_NONE, &reply)) return;
        mh_put_bool(out, "existed", mh_true(mh_get(reply.json, "existed")));
    }
    mh_put_bool(out, "ready", true);
    mh_key(out, "native_scope"), mh_open(out, '{'), mh_put_text(out, "scope", mh_scope_id(call, 0)), mh_close(out, '}');
    mh_close(out, '}');
}

/* Hands a turn to the backend, as one text. Repeated events never come here: the host's ledger answers them. */
MH_OPERATION(record_event) {
    const mh_json *event = call->body;
    mh_writer body = {0};
    mh_open(&body, '{');
    mh_put_text(&body, "event_id", mh_string(event, "event_id"));
    mh_put_text(&body, "text", mh_said(event));
    mh_put_text(&body, "created_at", mh_string(event, "timestamp"));
    mh_put_text(&body, "session", mh_string(event, "session_id"));
    mh_put_labels(&body, "labels", event);
    mh_close(&body, '}');
    mh_reply reply;
    if (!ask(call, (mh_request){"add", .body = mh_json_of(&body)}, MH_NONE, &reply)) return;
    mh_str id = mh_string(reply.json, "id"), status = mh_string(reply.json, "status");
    bool queued = mh_is(status, "queued"); /* not stored yet: readiness says when it is */
    if (!id.len || !(queued || mh_is(status, "stored"))) {
        mh_unusable(call, "add", &reply);
        return;
    }
    mh_open(out, '{');
    mh_put_text(out, "event_id", mh_string(event, "event_id"));
    mh_put_text(out, "status", mh_s(queued ? "queued" : "committed"));
    mh_put_one(out, "native_ids", id);
    mh_put_text(out, "native_ids_kind", mh_s("final"));
    mh_put_one(out, "markers", queued ? id : MH_NONE);
    mh_close(out, '}');
}

/* fit writes the items in the backend's order, as many as fit. */
static mh_fitted fit(mh_call *call, const mh_json *found, const mh_json *budget) {
    mh_item *all = mh_alloc(sizeof(mh_item) * (found->count + 1));
    size_t n = 0;
    for (const mh_json *i = found->first; i; i = i->next) all[n++] = (mh_item){mh_string(i, "text"), mh_s("- "), MH_NONE};
    mh_context context = mh_context_of(call, all, n);
    return n ? mh_fit(&context, budget) : (mh_fitted){0};
}

static void put_evidence(mh_writer *out, const mh_json *found, const mh_fitted *fitted) {
    size_t n = 0;
    mh_key(out, "evidence"), mh_open(out, '[');
    for (const mh_json *i = found->first; i; i = i->next, n++) {
        mh_open(out, '{');
        mh_put_text(out, "pointer", mh_join(2, mh_s("/calls/0/body/items/"), mh_decimal((int64_t)n)));
        mh_put_int(out, "rank", (int64_t)n + 1);
        mh_put_text(out, "native_id", mh_string(i, "id")), mh_put_text(out, "text", mh_string(i, "text"));
        if (mh_present(mh_get(i, "score"))) mh_put_raw(out, "score", mh_get(i, "score")->raw);
        if (mh_string(i, "created_at").len) mh_put_text(out, "created_at", mh_string(i, "created_at"));
        mh_put_text(out, "time_basis", mh_s("event"));
        mh_put_one(out, "source_event_ids", mh_string(i, "event_id"));
        mh_put_shown(out, fitted, n);
        mh_close(out, '}');
    }
    mh_close(out, ']');
}

MH_OPERATION(retrieve) {
    const mh_json *budget = mh_get(call->body, "budget");
    int64_t limit = mh_int_or(mh_get(call->envelope, "items"), mh_int_or(mh_setting(call, "limit"), 20));
    limit = mh_int_or(mh_get(budget, "max_items"), limit);
    mh_writer query = {0};
    mh_open(&query, '{');
    mh_put_text(&query, "query", mh_string(call->body, "query"));
    mh_put_int(&query, "limit", limit);
    mh_put_labels(&query, "labels", call->body);
    mh_close(&query, '}');
    mh_reply reply;
    if (!ask(call, (mh_request){"search", .body = mh_json_of(&query)}, MH_NONE, &reply)) return;
    const mh_json *found = reply.empty ? &mh_null : items(reply.json);
    if (!found) {
        mh_unusable(call, "search", &reply);
        return;
    }
    mh_fitted fitted = fit(call, found, budget);

    mh_open(out, '{');
    mh_put_raw_of(out, "search", &reply);
    mh_put_text(out, "formatted_context", fitted.text);
    put_evidence(out, found, &fitted);
    mh_key(out, "trace"), mh_open(out, '{');
    mh_put_text(out, "result_state", mh_s(found->count ? "results" : "empty"));
    mh_put_budget(out, &fitted, budget, limit, (int64_t)found->count);
    mh_put_filters(out, call->body, "hard");
    mh_put_text(out, "as_of_mode", mh_s("ignored"));
    mh_close(out, '}'), mh_close(out, '}');
}

/* The same text as in retrieve for the same items and budget: both come from fit. */
MH_OPERATION(format_context) {
    const mh_json *result = mh_get(call->body, "result"), *answer = mh_get(mh_get(result, "raw"), "calls")->first;
    const mh_json *found = answer ? items(mh_get(answer, "body")) : &mh_null;
    if (!found) {
        mh_fail(call, "invalid_argument", mh_s("result.raw.calls[0].body: want the backend's items"));
        return;
    }
    mh_fitted fitted = fit(call, found, mh_get(call->body, "budget"));
    mh_open(out, '{');
    mh_put_text(out, "formatted_context", fitted.text);
    mh_put_int(out, "token_count", fitted.tokens);
    mh_put_bool(out, "truncated", fitted.truncated);
    put_evidence(out, found, &fitted);
    mh_close(out, '}');
}

MH_OPERATION(reset_scope) {
    mh_reply reply;
    if (!ask(call, (mh_request){"remove"}, MH_NONE, &reply)) return;
    mh_open(out, '{');
    mh_put_text(out, "status", mh_s("done"));
    mh_key(out, "removed"), mh_open(out, '{'), mh_put_int(out, "note", mh_int_or(mh_get(reply.json, "removed"), 0)), mh_close(out, '}');
    mh_close(out, '}');
}

MH_OPERATION(health) {
    mh_reply reply;
    if (!ask(call, (mh_request){"health"}, MH_NONE, &reply)) return;
    mh_str status = mh_string(reply.json, "status");
    if (!status.len) {
        mh_unusable(call, "health", &reply);
        return;
    }
    mh_open(out, '{');
    mh_put_text(out, "status", mh_s(mh_is(status, "ok") ? "ok" : "degraded"));
    mh_put_text(out, "backend_name", mh_string(mh_config(call), "provider"));
    mh_put_text(out, "backend_version", mh_string(reply.json, "version"));
    mh_put_text(out, "consistency_model", mh_s("immediate"));
    mh_put_text(out, "isolation", mh_s("hard"));
    mh_put_text(out, "pet_observability", mh_s("strong"));
    mh_close(out, '}');
}

/* What follows are capabilities: exporting one is offering it. */

MH_OPERATION(inventory) {
    int64_t pending;
    const mh_json *found;
    if (!waits(call, &pending) || !list(call, MH_NONE, &found)) return;
    mh_open(out, '{');
    mh_key(out, "kinds"), mh_open(out, '['), mh_open(out, '{');
    mh_put_text(out, "kind", mh_s("note")), mh_put_int(out, "count", (int64_t)found->count);
    mh_close(out, '}'), mh_close(out, ']');
    mh_put_bool(out, "complete", true), mh_put_bool(out, "quiescent", !pending);
    mh_close(out, '}');
}

MH_OPERATION(readiness) {
    int64_t pending;
    if (!waits(call, &pending)) return;
    mh_open(out, '{');
    mh_put_text(out, "status", mh_s(pending ? "pending" : "ready"));
    mh_put_raw(out, "event_ids", mh_s("{}"));
    mh_put_text(out, "method", mh_s("status"));
    mh_close(out, '}');
}

/* The queue is looked at first: what leaves it between the two looks is found by the second. */
MH_OPERATION(find_event) {
    int64_t pending;
    const mh_json *found;
    if (!waits(call, &pending) || !list(call, mh_string(call->body, "event_id"), &found)) return;
    mh_open(out, '{');
    mh_put_text(out, "found", mh_s(found->count ? "present" : pending ? "unknown" : "absent"));
    mh_key(out, "native_ids"), mh_open(out, '[');
    for (const mh_json *i = found->first; i; i = i->next) mh_text(out, mh_string(i, "id"));
    mh_close(out, ']');
    if (pending) mh_put_int(out, "retry_after_ms", 100);
    mh_close(out, '}');
}

MH_OPERATION(forget) {
    const mh_json *found;
    if (!list(call, MH_NONE, &found)) return;
    mh_open(out, '{');
    mh_key(out, "removed"), mh_open(out, '{'), mh_key(out, "note"), mh_open(out, '[');
    for (const mh_json *i = found->first; i; i = i->next) {
        mh_str id = mh_string(i, "id");
        mh_reply reply;
        if (!mh_means(call->body, id, mh_string(i, "event_id"), mh_string(i, "session"), mh_string(i, "created_at"))) continue;
        if (!ask(call, (mh_request){"remove_item"}, id, &reply)) return;
        mh_text(out, id);
    }
    mh_close(out, ']'), mh_close(out, '}');
    mh_put_text(out, "status", mh_s("done"));
    mh_put_raw(out, "derived_may_remain", mh_s("[]"));
    mh_close(out, '}');
}
