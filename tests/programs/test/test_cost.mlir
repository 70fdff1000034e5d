// CHECK-LABEL: --- Running 'main':
// CHECK-DAG: id: 1
// CHECK-DAG: id: 2
func.func @main() -> i32 {
  %a = tfrt_test.test_cost {id = 1 : i64, _tfrt_cost = 2 : i64} :
  %b = tfrt_test.test_cost %a {id = 2 : i64, _tfrt_cost = 1 : i64} : i32
  tfrt.return %b : i32
}
