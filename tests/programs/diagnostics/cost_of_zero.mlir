// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> i32 {
  // expected-error @+1 {{cost}}
  %x = tfrt_test.test_cost {id = 1 : i64, _tfrt_cost = 0 : i64} :
  tfrt.return %x : i32
}
