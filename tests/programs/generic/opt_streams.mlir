// RUN: tfrt_opt -tfrt-print-stream -verify-diagnostics -split-input-file

// expected-remark @+1 {{stream id: 0, stream cost: 12, parent stream: -1}}
func.func @main() -> i32 attributes {tfrt.cost_threshold = 10 : i64} {
  // expected-remark @+1 {{stream id: 0, stream cost: 12, parent stream: -1}}
  %x = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
  // expected-remark @+1 {{stream id: 0, stream cost: 12, parent stream: -1}}
  "tfrt.return"(%x) : (i32) -> ()
}
// -----

func.func @main() {
  // expected-error @+1 {{'unregistered.call' op created with unregistered dialect}}
  "unregistered.call"() : () -> ()
  "tfrt.return"() : () -> ()
}
