// RUN: bef_executor --functions=second,first --test_init_function=start

// CHECK-LABEL: --- Running 'start':
// CHECK-NEXT: --- Running 'second':
// CHECK-NEXT: --- Running 'first':
// CHECK-NOT: Running
func.func @first() { "tfrt.return"() : () -> () }
func.func @second() { "tfrt.return"() : () -> () }
func.func @start() { "tfrt.return"() : () -> () }
