#include "api/arguments.h"
#include "api/service.h"
#include "api/service_models.h"
#include "run/tune.h"

namespace bezel {

using nlohmann::json;

Task<Result<Answer>> Service::tune(json args, Caller caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  if (!model->device) co_return fail(ErrorKind::kUnsupported, "This model is not on a GPU.");
  const Arguments in(args);
  TuneOptions options;
  CO_TRY(in.into("software", options.software));
  CO_TRY(in.into("seconds", options.seconds));
  CO_TRY(in.into("rounds", options.rounds));
  options.go_on = caller.go_on;
  const auto turn = co_await model->lock.turn();
  const DeviceInfo& info = model->device->info();
  const TuneReport report = CO_TRY(co_await bezel::tune(model->engine->backend(), info, std::move(options)));
  json products = json::array();
  for (const TunedProduct& product : report.products) {
    products.push_back({{"kernel", product_name(product.shape.kind)},
                        {"type", dtype_name(product.shape.type)},
                        {"rows", product.shape.rows},
                        {"cols", product.shape.cols},
                        {"tokens", product.shape.tokens},
                        {"dispatches", product.dispatches},
                        {"variant", product.variant},
                        {"before", product.before},
                        {"after", product.after}});
  }
  tuning_ = report.added_to(Tuning::parse(tuning_, info)).text(info);
  tuning_is_new_ = true;
  co_return Answer{
      {{"products", std::move(products)}, {"tried", report.tried}, {"variants", report.variants}}, {}};
}

}  // namespace bezel
