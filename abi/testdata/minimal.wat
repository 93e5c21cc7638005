;; A provider that retains nothing. The answers stand in the first page of the memory, the request buffer follows.
(module
  (memory (export "memory") 2)
  (data (i32.const 16) "{\"ready\":true,\"native_scope\":{},\"warnings\":[]}")
  (data (i32.const 64) "{\"status\":\"not_retained\",\"native_ids\":[],\"native_ids_kind\":\"none\",\"markers\":[],\"warnings\":[]}")
  (data (i32.const 160) "{\"raw\":{\"calls\":[]},\"formatted_context\":\"\",\"evidence\":[]}")
  (data (i32.const 224) "{\"formatted_context\":\"\",\"token_count\":0,\"truncated\":false}")
  (data (i32.const 288) "{\"status\":\"done\",\"removed\":{},\"remains\":[],\"warnings\":[]}")
  (data (i32.const 352) "{\"status\":\"ok\",\"backend_name\":\"nothing\",\"consistency_model\":\"immediate\",\"isolation\":\"hard\",\"pet_observability\":\"weak\",\"warnings\":[]}")

  (func (export "mh_abi_1"))     ;; the version, never called
  (func (export "_initialize"))  ;; nothing to prepare

  ;; The buffer begins at 65536 and needs size bytes: (size + 131071) / 65536 pages in all, rounded down.
  (func (export "mh_buffer") (param $size i32) (result i32)
    (local $missing i32)
    (local.set $missing (i32.sub (i32.shr_u (i32.add (local.get $size) (i32.const 131071)) (i32.const 16)) (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1)) (then (unreachable)))))
    (i32.const 65536))

  ;; pointer << 32 | length; bit 31 stays 0, so each is an answer and no error.
  (func (export "setup_scope") (param i32) (result i64) (i64.const 0x000000100000002e))
  (func (export "record_event") (param i32) (result i64) (i64.const 0x000000400000005d))
  (func (export "retrieve") (param i32) (result i64) (i64.const 0x000000a000000039))
  (func (export "format_context") (param i32) (result i64) (i64.const 0x000000e00000003a))
  (func (export "reset_scope") (param i32) (result i64) (i64.const 0x0000012000000039))
  (func (export "health") (param i32) (result i64) (i64.const 0x0000016000000084))
)
